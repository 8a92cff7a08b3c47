"""The acts of the cast on a request for signatures, in few words."""

from __future__ import annotations

from typing import Any

from recovery.actions import approvals as actions
from recovery.actions.common import Done
from recovery.engine import approvals
from runs import clock
from runs.models import Approval, Effect, Person, Review
from runs.record import Act
from runs.states import EventKind
from tests.recovery.stage import SAW, Stage, act


def sign(approval: Approval, who: Person, how: Act | None = None, **given: Any) -> Done:
    told: dict[str, Any] = {"reason": "looks right", "digest": approval.digest, "saw": SAW, **given}
    return actions.sign(approval.pk, actor=who, act=how or act("sign"), **told)


def reject(approval: Approval, who: Person, how: Act | None = None) -> Done:
    return actions.reject(
        approval.pk, actor=who, act=how or act("reject"), reason="no", digest=approval.digest, saw=SAW
    )


def withdraw(approval: Approval, who: Person) -> Done:
    return actions.withdraw(approval.pk, actor=who, act=act("withdraw"))


def renew(approval: Approval, who: Person) -> Done:
    return actions.renew(approval.pk, actor=who, act=act("renew"), reason="still needed")


def granted(s: Stage) -> Approval:
    approval = s.asked()
    sign(approval, s.approver_b)
    sign(approval, s.approver_c)
    return Approval.objects.get(pk=approval.pk)


def sent(s: Stage, approval: Approval) -> None:
    effect = Effect.objects.get(pk=approval.effect_id)
    good = approvals.check_before_send(effect, clock.now())
    assert isinstance(good, Approval)
    s.write(approval.run_id, *s.sending(effect, good), kind=EventKind.EFFECT_SENT)


def open_reviews(approval: Approval) -> list[Review]:
    return list(Review.objects.filter(subject=approval.pk, state="open"))
