"""One message a hundred times at once (fault 29): one transition, one row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from django.db import connection

from recovery.traffic import callbacks
from recovery.traffic.callbacks import Heard
from runs.models import Callback, Dependency, Event
from runs.states import EffectState, EventKind
from tests.recovery.engine.fixtures import w
from tests.recovery.engine.test_unknown import unknown
from tests.recovery.engine.world import World
from tests.recovery.traffic.test_callbacks import message

__all__ = ["w"]


def test_a_hundred_deliveries_at_once_are_one(w: World) -> None:  # noqa: F811
    """Invariant 15: everyone is answered, one transition is recorded."""
    run = unknown(w, "pay", "payments")
    body = message(w.effect(run))  # type: ignore[arg-type]
    payments = Dependency.objects.get(workspace=w.s.here, name="payments")

    def once(_n: int) -> Heard:
        try:
            return callbacks.receive(payments, "msg_1", body, datetime.now(UTC))
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as threads:
        heard = list(threads.map(once, range(100)))
    assert sorted(set(heard)) == [Heard.AGAIN, Heard.MATCHED]
    assert heard.count(Heard.MATCHED) == 1
    assert Callback.objects.count() == 1
    settled = Event.objects.filter(run_id=run, kind=EventKind.EFFECT_SETTLED)
    assert settled.count() == 1
    assert w.effect(run).state == EffectState.SUCCEEDED  # type: ignore[arg-type]
    w.sound()
