"""Ringing again is bounded: a queue that nobody reads does not grow until the broker is full."""

from __future__ import annotations

from uuid import uuid4

import pytest

from recovery import bells, tasks


@pytest.fixture
def broker(valkey: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Valkey, empty, and nobody who reads it."""
    from console.celery import app

    app.set_current()
    monkeypatch.setattr(app.conf, "broker_write_url", valkey)
    monkeypatch.setattr(app, "_pool", None)
    monkeypatch.setattr(app.amqp, "_producer_pool", None)
    monkeypatch.setattr(bells, "_quiet_until", 0.0)
    monkeypatch.setattr(bells, "_counted", {})
    return valkey


def test_the_sweep_stops_ringing_where_enough_waits(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bells, "MOST_WAITING", 3)
    assert [bells.publish("dispatch", str(uuid4())) for _ in range(5)] == [True] * 3 + [False] * 2
    bells._counted.clear()
    assert bells.publish("dispatch", str(uuid4())) is False, "counted at the broker, not only here"
    assert bells.publish("advance", str(uuid4()), str(uuid4())) is True, "another queue has its own room"


def test_it_rings_again_once_somebody_read_them(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import redis

    monkeypatch.setattr(bells, "MOST_WAITING", 1)
    monkeypatch.setattr(bells, "COUNT_EVERY", 0.0)
    assert bells.publish("dispatch", "a") is True
    assert bells.publish("dispatch", "b") is False
    with redis.Redis.from_url(broker) as client:
        client.delete("dispatch")
    assert bells.publish("dispatch", "b") is True


def test_a_commits_own_bell_is_rung_all_the_same(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is rung once; the sweep's are the ones that repeat."""
    monkeypatch.setattr(bells, "MOST_WAITING", 0)
    assert bells._publish(tasks.dispatch, "a") is True
