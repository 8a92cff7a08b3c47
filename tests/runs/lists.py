"""What the tests of the lists share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from runs import clock, queries
from runs.models import Approval, Effect, Signature
from runs.states import EffectState, RunState
from tests.runs import make
from tests.runs.make import World


def subject(item: Any) -> Any:
    """What a row of a list is about."""
    match item:
        case queries.RunRow():
            return item.run
        case queries.InboxRow():
            return item.review
    return item


def walk(read: Callable[[str | None], Any]) -> list[Any]:
    """All items by ``next``, then back by ``previous``: both ways give the same."""
    pages, cursor = [], None
    while True:
        page = read(cursor)
        pages.append(page)
        if page.next is None:
            break
        cursor = page.next
    there = [item for page in pages for item in page.items]
    back, page = [list(pages[-1].items)], pages[-1]
    while page.previous:
        page = read(page.previous)
        back.insert(0, list(page.items))
    keys = [subject(item) for item in there]
    again = [subject(item) for page_items in back for item in page_items]
    assert [k.pk for k in keys] == [k.pk for k in again]
    return there


def asked(world: World, revision: int = 1, state: str = "pending", effect: Effect | None = None) -> Approval:
    """A request for two signatures by ``person``."""
    now = clock.now()
    if effect is None:
        run = make.run_in(world, RunState.WAITING)
        effect = make.effect_in(world, run.pk, EffectState.AWAITING_APPROVAL)
    return Approval.objects.create(
        workspace=world.workspace,
        run_id=effect.run_id,
        effect=effect,
        revision=revision,
        digest="4f2a91c0" + "0" * 56,
        fields={},
        body="{}",
        state=state,
        needed=2,
        group=world.group,
        requester=world.person,
        epoch=1,
        asked_at=now,
        approve_by=now + timedelta(hours=8),
        execute_within=3600,
    )


def sign(approval: Approval, person: Any) -> Signature:
    return Signature.objects.create(
        workspace=approval.workspace,
        approval=approval,
        person=person,
        state="signed",
        reason="",
        saw={},
        at=clock.now(),
    )
