"""What really happened, by intent: how often it was received, how often it took effect, with which bytes."""

from typing import Final

from recovery.sandbox.clock import iso
from recovery.sandbox.store import Store
from recovery.sandbox.wire import Json

HEADERS: Final = {"key": "Idempotency-Key", "attempt": "Recourse-Attempt", "token": "Recourse-Token"}
JOIN: Final = "left join effects e on e.seq = r.effect"


def _narrowed(intent: str | None) -> tuple[str, tuple[object, ...]]:
    return ("", ()) if intent is None else (" where r.intent = ?", (intent,))


def intents(store: Store, intent: str | None = None) -> list[Json]:
    """One entry for each provider and intent, in order of first arrival.

    `bodies` are the different bodies received (exact text), `ids` the effects applied.
    """
    where, values = _narrowed(intent)
    # One reading: each effect is in the same transaction as its first request, so none is missed.
    query = f"select r.provider, r.intent, r.body, e.id from requests r {JOIN}{where} order by r.seq"
    found: dict[tuple[str, str], Json] = {}
    for row in store.rows(query, values):
        provider, name = row["provider"], row["intent"]
        fresh = {"provider": provider, "intent": name, "applied": 0, "received": 0, "bodies": [], "ids": []}
        entry = found.setdefault((provider, name), fresh)
        entry["received"] += 1
        if row["body"] not in entry["bodies"]:
            entry["bodies"].append(row["body"])
        if row["id"] is not None and row["id"] not in entry["ids"]:
            entry["ids"].append(row["id"])
            entry["applied"] += 1
    return list(found.values())


def requests(store: Store, intent: str | None = None) -> list[Json]:
    """Every request received, in order: when, with which headers, and what became of it.

    `verdict` is applied, replayed, rejected, mismatch, in_flight, overloaded, refused, malformed, invalid,
    no_key, bad_key or waiting; `status` is None where no answer left.
    """
    where, values = _narrowed(intent)
    query = f"select r.*, e.id as effect_id from requests r {JOIN}{where}"
    return [
        {
            "provider": row["provider"],
            "intent": row["intent"],
            "received_at": iso(row["received_at"], "microseconds"),
            "path": row["path"],
            "headers": {name: row[column] for column, name in HEADERS.items()},
            "body": row["body"],
            "dial": row["dial"],
            "verdict": row["verdict"],
            "status": row["status"],
            "id": row["effect_id"],
        }
        for row in store.rows(f"{query} order by r.seq", values)
    ]


def applied(store: Store, key: str) -> int:
    """How often the intent `key` took effect, at all providers together."""
    return int(store.rows("select count(*) as n from effects where intent = ?", (key,))[0]["n"])


def totals(store: Store) -> Json:
    """How many requests were received and how many effects applied, in all."""
    query = "select (select count(*) from requests) as received, (select count(*) from effects) as applied"
    row = store.rows(query)[0]
    return {"received": row["received"], "applied": row["applied"]}
