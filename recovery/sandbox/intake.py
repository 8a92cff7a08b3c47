"""A POST to a provider, from its bytes to the answer: check, take the key, apply, answer as the dial says.

The effect, the key and the ledger's line are one transaction: no reader ever sees one without the others.
Answers are stored under a key only when the effect was applied, so a rejection may be tried again.
"""

import hashlib
import json
import secrets
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from recovery.sandbox.clock import SECOND, iso, now_us
from recovery.sandbox.dials import Dial, Dials
from recovery.sandbox.providers.base import Made, Provider
from recovery.sandbox.store import Store
from recovery.sandbox.wire import BadJson, Json, Reply, answer, dump, error, load

LONGEST_KEY: Final = 255
GARBAGE: Final = b'{"id":"re_\xff\xfe<html>'
REPLAYED: Final = ("Idempotent-Replayed", "true")


class Stopping(Exception):
    """The sandbox ends while this request waits: nothing more is applied or answered."""


@dataclass(frozen=True)
class Arrival:
    """A POST as it came in; the three headers as sent, or None; `received_at` in microseconds."""

    provider: str
    path: str
    key: str | None
    attempt: str | None
    token: str | None
    body: bytes
    received_at: int

    @cached_property
    def text(self) -> str:
        """The exact body as text; bytes that are no UTF-8 are shown as escapes."""
        return self.body.decode(errors="backslashreplace")

    @cached_property
    def intent(self) -> str:
        """What the ledger counts by: the key as sent, else the digest of the bytes."""
        return self.key or f"sha256:{hashlib.sha256(self.body).hexdigest()}"


type Applied = Callable[[Provider, Dial, Json], None]


class Intake:
    """Takes POSTs. `applied` is told of each new effect, after its commit; `stopping` ends all waits."""

    def __init__(self, store: Store, dials: Dials, applied: Applied, stopping: threading.Event) -> None:
        self._store = store
        self._dials = dials
        self._applied = applied
        self._stopping = stopping
        self._lock = threading.Lock()
        self._in_flight: set[tuple[str, str]] = set()

    def take(self, provider: Provider, arrival: Arrival) -> Reply:
        """Carry out one POST and give its answer. Raises Stopping."""
        try:
            data = load(arrival.body)
        except BadJson as bad:
            return self._refuse(arrival, "malformed", error(400, "malformed", str(bad)))
        if problems := provider.problems(data):
            said = "; ".join(f"{p['name']} {p['problem']}" for p in problems)
            return self._refuse(arrival, "invalid", error(422, "invalid", said, fields=problems))
        if not self._dials.get(provider.name).keys:
            return self._carry_out(provider, arrival, data, key=None)
        key = arrival.key
        if not key:
            return self._refuse(arrival, "no_key", error(400, "key_missing", "Idempotency-Key is missing"))
        if len(key) > LONGEST_KEY or not key.isprintable():
            said = f"Idempotency-Key must be at most {LONGEST_KEY} printable characters"
            return self._refuse(arrival, "bad_key", error(400, "key_invalid", said))
        place = (provider.name, key)
        with self._lock:
            busy = place in self._in_flight
            self._in_flight.add(place)
        if busy:
            said = "a request with this key is being carried out"
            return self._refuse(arrival, "in_flight", error(409, "in_flight", said))
        try:
            return self._carry_out(provider, arrival, data, key=key)
        finally:
            with self._lock:
                self._in_flight.discard(place)

    def _carry_out(self, provider: Provider, arrival: Arrival, data: Json, key: str | None) -> Reply:
        """`key` None: keys are not honoured, each request takes effect."""
        dial = self._dials.claim(provider.name, arrival.text)
        if dial.reply == "overload":
            reply = error(429, "overloaded", "too many requests")
            reply = Reply(reply.status, reply.body, (("Retry-After", str(dial.retry_after)),))
            return self._refuse(arrival, "overloaded", reply, dial)
        if dial.reply == "refuse":
            return self._refuse(arrival, "refused", error(503, "unavailable", "not taken, try later"), dial)
        line = None
        if dial.delay_before:
            # Seen in the ledger while it waits, so that a test knows when the bytes have arrived.
            with self._store.transaction() as db:
                line = _write_line(db, arrival, dial, "waiting", None)
            self._wait(dial.delay_before)
        item: Json | None = None
        with self._store.transaction() as db:
            now = now_us()
            digest = "" if key is None else _digest(data)
            kept = None if key is None else _kept(db, provider.name, key, now - int(dial.key_window * SECOND))
            if kept is not None and kept["digest"] != digest:
                verdict, effect = "mismatch", None
                reply = error(422, "mismatch", "this key was used with another body")
            elif kept is not None:
                verdict, effect = "replayed", kept["effect"]
                reply = _leaving(dial, Reply(kept["status"], kept["answer"], (REPLAYED,)))
            elif dial.reply == "reject":
                verdict, effect = "rejected", None
                reply = error(402, "insufficient_funds", "the balance does not cover it")
            else:
                made = Made(provider.prefix + secrets.token_hex(12), arrival.key, iso(now))
                item = provider.item(made, data)
                verdict, effect = "applied", _apply(db, provider, arrival, made, data, item, now)
                whole = answer(201, item)
                if key is not None:
                    db.execute(
                        "insert or replace into keys values (?, ?, ?, ?, ?, ?, ?)",
                        (provider.name, key, digest, now, whole.status, whole.body, effect),
                    )
                reply = _leaving(dial, whole)
            _write_line(db, arrival, dial, verdict, reply, effect, line)
        if item is not None:
            self._applied(provider, dial, item)
        if dial.reply == "slow":
            self._wait(dial.delay)
        return reply

    def _refuse(self, arrival: Arrival, verdict: str, reply: Reply, dial: Dial | None = None) -> Reply:
        with self._store.transaction() as db:
            _write_line(db, arrival, dial, verdict, reply)
        return reply

    def _wait(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise Stopping


def _digest(data: Json) -> str:
    """Two bodies are the same when their JSON is, whatever the order of their members."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _kept(db: sqlite3.Connection, provider: str, key: str, since: int) -> sqlite3.Row | None:
    query = "select digest, status, answer, effect from keys where provider = ? and key = ? and kept_at > ?"
    row: sqlite3.Row | None = db.execute(query, (provider, key, since)).fetchone()
    return row


def _apply(
    db: sqlite3.Connection, provider: Provider, arrival: Arrival, made: Made, data: Json, item: Json, now: int
) -> int | None:
    cursor = db.execute(
        "insert into effects (id, provider, intent, key, subject, applied_at, item) values (?, ?, ?, ?, ?, ?, ?)",
        (made.id, provider.name, arrival.intent, made.key, data[provider.subject], now, dump(item).decode()),
    )
    return cursor.lastrowid


def _leaving(dial: Dial, whole: Reply) -> Reply:
    """How the answer to something that took effect leaves, as the dial says."""
    match dial.reply:
        case "drop":
            return Reply(whole.status, b"", way="drop")
        case "reset":
            return Reply(whole.status, b"", way="reset")
        case "error500":
            return error(500, "internal", "something went wrong")
        case "garbage":
            return Reply(201, GARBAGE)
    return whole


def _write_line(
    db: sqlite3.Connection,
    arrival: Arrival,
    dial: Dial | None,
    verdict: str,
    reply: Reply | None,
    effect: int | None = None,
    line: int | None = None,
) -> int | None:
    """The ledger's line of a request: written, or completed where `line` was written before a wait.

    The status is None while the request waits and where no answer left.
    """
    status = reply.status if reply is not None and reply.way == "send" else None
    if line is not None:
        db.execute(
            "update requests set verdict = ?, status = ?, effect = ? where seq = ?",
            (verdict, status, effect, line),
        )
        return line
    cursor = db.execute(
        "insert into requests (provider, intent, received_at, path, key, attempt, token, body, dial, verdict,"
        " status, effect) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            arrival.provider,
            arrival.intent,
            arrival.received_at,
            arrival.path,
            arrival.key,
            arrival.attempt,
            arrival.token,
            arrival.text,
            "ok" if dial is None else dial.reply,
            verdict,
            status,
            effect,
        ),
    )
    return cursor.lastrowid
