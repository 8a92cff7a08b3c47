"""A GET to a provider: what it says has happened, as late or as silent as the dial makes it."""

import json
from datetime import datetime
from typing import Final

from recovery.sandbox.clock import EPOCH, SECOND, iso, now_us
from recovery.sandbox.dials import Dials
from recovery.sandbox.providers.base import Provider
from recovery.sandbox.store import Store
from recovery.sandbox.wire import Reply, answer, error

PAGE: Final = 100


def read_back(store: Store, dials: Dials, provider: Provider, query: dict[str, str]) -> Reply:
    """The provider's items that match `query`, oldest first, at most a page.

    `as_of` is the moment up to which the answer is complete: now, less the lag.
    """
    dial = dials.claim_readback(provider.name)
    if dial.readback == "down":
        return error(503, "unavailable", "readback is down")
    if "prefix" in query and "reference" in provider.filters:
        return _list(store, provider, query, now_us() - int(dial.lag * SECOND))
    allowed = " or ".join(provider.filters)
    if unknown := [name for name in query if name not in provider.filters]:
        return error(400, "unknown_parameter", f"{unknown[0]} is not known here; use {allowed}")
    if not query or not all(query.values()):
        return error(400, "missing_parameter", f"give {allowed}")
    as_of = now_us() - int(dial.lag * SECOND)
    # `reference` is the key as it was sent; the other filter is what the effect is about.
    where = {"key" if name == "reference" else "subject": value for name, value in query.items()}
    conditions = "".join(f" and {column} = ?" for column in where)
    rows = store.rows(
        f"select item from effects where provider = ? and applied_at <= ?{conditions} order by seq limit {PAGE + 1}",
        (provider.name, as_of, *where.values()),
    )
    data = [json.loads(row["item"]) for row in rows[:PAGE]]
    return answer(200, {"data": data, "has_more": len(rows) > PAGE, "as_of": iso(as_of)})


def _list(store: Store, provider: Provider, query: dict[str, str], as_of: int) -> Reply:
    """What was made since `since` under keys that begin with `prefix`, in pages: `next` is the last one's place."""
    if unknown := [name for name in query if name not in ("prefix", "since", "after")]:
        return error(400, "unknown_parameter", f"{unknown[0]} is not known here; use prefix, since, after")
    try:
        since = datetime.fromisoformat(query.get("since", ""))
        since_us = int((since - EPOCH).total_seconds() * SECOND)
        after = int(query.get("after", "0"))
    except (ValueError, TypeError):
        return error(400, "bad_parameter", "since is a moment with its zone, after a place that an answer named")
    rows = store.rows(
        "select seq, item from effects where provider = ? and applied_at between ? and ? and seq > ?"
        f" and substr(key, 1, ?) = ? order by seq limit {PAGE + 1}",
        (provider.name, since_us, as_of, after, len(query["prefix"]), query["prefix"]),
    )
    more = len(rows) > PAGE
    data = [json.loads(row["item"]) for row in rows[:PAGE]]
    return answer(200, {"data": data, "next": str(rows[PAGE - 1]["seq"]) if more else None, "as_of": iso(as_of)})
