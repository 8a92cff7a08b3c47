"""``/restores/{id}/``: what a restore holds back, and the two people who let sending go on."""

from __future__ import annotations

import re
from typing import Any

import pytest

from runs import clock, record
from runs.models import Restore
from runs.record import Commit, Entry
from runs.restored import RestoreState
from runs.states import EventKind
from tests.console.screens.posting import press
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text


@pytest.fixture
def held(scene: Scene) -> Restore:
    """The record was restored, and the other sides were read; one could not be listed."""
    from recovery.upkeep import restore
    from runs import epochs

    restore.begin("older_record", epochs.here(), epochs.current(), None)
    row = Restore.objects.get(workspace=scene.here)
    swept = {
        "state": RestoreState.SWEPT,
        "found": {"recovered": 3, "clear": 2, "effects": {"succeeded": 1, "unknown": 1}},
        "left": [
            {"code": "not_listed", "operation": "payments.refund", "error": "http_503", "n": 0},
            {"code": "not_looked_at", "n": 4},
            {"code": "unknown", "n": 1, "effects": []},
        ],
    }
    change = record.move("restore", row.pk, [RestoreState.FROZEN], swept, times={"swept_at": 0})
    record.commit(Commit(scene.here.pk, None, [Entry(EventKind.EPOCH_SWEPT, {}, [change])]))
    return Restore.objects.get(pk=row.pk)


def address(row: Restore) -> str:
    return f"/restores/{row.pk}/"


def do(client: Any, row: Restore, decision: str, **typed: Any) -> Any:
    given = {"reason": "read through", **typed}
    return press(client, client.get(address(row)), address(row), decision=decision, **given)


def test_the_inbox_leads_to_what_was_found_and_what_is_left(scene: Scene, held: Restore) -> None:
    client = scene.client("a")
    inbox = client.get("/w/acme-pay/inbox/")
    assert address(held) in inbox.content.decode()
    assert "The record was restored from an older backup; nothing is sent." in text(inbox)
    page = text(client.get(address(held)))
    assert "3 effects were found that the record did not know" in page
    assert "effects that may have been sent: 1 succeeded, 1 unknown" in page
    assert "payments.refund could not be listed to its end (http_503)." in page
    assert "4 effects could not be looked at; each is looked at before it is sent." in page
    assert "Ask to let things be sent again" in page


def test_one_asks_and_another_lets(scene: Scene, held: Restore) -> None:
    asked = do(scene.client("a"), held, "ask")
    assert re.search(r"Asked at [\d:]+\. A second person lets things be sent again\.", text(asked))
    own = text(scene.client("a").get(address(held)))
    assert "Not yet" in own and "Let things be sent again" not in own, "not by oneself"
    second = scene.client("b")
    assert "Oncall A asked: read through" in text(second.get(address(held)))
    assert re.search(r"Let at [\d:]+: things are sent again\.", text(do(second, held, "let")))
    held.refresh_from_db()
    assert (held.state, held.released_by_id) == (RestoreState.RELEASED, scene.people["b"].pk)
    assert "Approver B let it" in text(second.get(address(held)))


def test_the_second_may_say_not_yet(scene: Scene, held: Restore) -> None:
    do(scene.client("a"), held, "ask")
    assert "Nothing is sent." in text(do(scene.client("b"), held, "refuse"))
    held.refresh_from_db()
    assert (held.state, held.asked_by_id) == (RestoreState.SWEPT, None)


def test_it_asks_who_is_there_and_for_a_reason(scene: Scene, held: Restore) -> None:
    client = scene.client("a")
    opened = client.get(address(held))
    asked = press(client, opened, address(held), step_up=False, decision="ask", reason="read through")
    assert asked.status_code == 403 and "Confirm it is you" in text(asked)
    assert do(client, held, "ask", reason=" ").status_code == 422
    held.refresh_from_db()
    assert held.state == RestoreState.SWEPT


def test_who_may_not_is_told_and_strangers_see_nothing(scene: Scene, held: Restore) -> None:
    assert do(scene.client("d"), held, "ask").status_code == 403
    assert scene.client("e").get(address(held)).status_code == 404
    do(scene.client("a"), held, "ask")
    again = scene.client("a")
    refused = press(again, again.get(address(held)), address(held), decision="let", reason="me too")
    assert refused.status_code == 403 and "another person" in text(refused)


def test_while_it_is_being_read_nothing_can_be_pressed(scene: Scene) -> None:
    from recovery.upkeep import restore
    from runs import epochs

    restore.begin("older_record", epochs.here(), epochs.current(), None)
    row = Restore.objects.get(workspace=scene.here)
    page = scene.client("a").get(address(row))
    assert "What had happened is being read; nothing is sent." in text(page)
    assert "<form" not in page.content.decode().split("<main")[1].split("</main")[0]
    assert row.began_at <= clock.now()
