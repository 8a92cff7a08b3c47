"""What the tests do inside the stack's own environment, by `manage.py shell -c`: time, and leaving nothing behind."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

from recovery import bells
from recovery.actions import runs, verdicts
from recovery.engine.verdicts import DECIDABLE
from runs import clock
from runs.errors import RunEnded
from runs.models import Effect, Person, Review, Run, Verdict
from runs.record import Act
from runs.states import VerdictSays, VerdictState


def _person(email: str) -> Person:
    return Person.objects.get(email=email)


def _act(route: str) -> Act:
    return Act(uuid4(), route)


def shift(seconds: float) -> None:
    """Move the record's clock, and ring for what is due by it: the sweep would, but for the rings it remembers."""
    clock.shift(timedelta(seconds=seconds))
    for pk in Effect.objects.filter(next_check_at__lte=clock.now()).values_list("pk", flat=True):
        bells.publish("reconcile", str(pk))


def review(effect: str) -> None:
    """Print the id of the open item of the inbox about ``effect``."""
    print(Review.objects.filter(effect=effect, state="open").values_list("pk", flat=True).get())


def propose(effect: str) -> None:
    """Oncall A says on a word alone that it happened; print the id of the decision, which waits for a second."""
    print(_said(Effect.objects.get(pk=effect)).pk)


def _said(effect: Effect) -> Verdict:
    given = {"reason": "The desk has it.", "evidence": [], "version": effect.version, "statement": "It is there."}
    one = verdicts.record(
        effect.pk,
        actor=_person("oncall-a@acme.example"),
        act=_act("verdicts.record"),
        says=VerdictSays.HAPPENED,
        **given,
    )
    return Verdict.objects.get(pk=one.facts["verdict"])


def tidy(*ids: str) -> None:
    """Settle what nobody knows of these runs, and cancel what goes on: the inbox is empty for the next test."""
    for effect in Effect.objects.filter(run__in=ids, state__in=DECIDABLE):
        waits = Verdict.objects.filter(effect=effect, state=VerdictState.PROPOSED).first() or _said(effect)
        if waits.state == VerdictState.PROPOSED:
            second, act = _person("approver-b@acme.example"), _act("verdicts.confirm")
            given = {"confirm": True, "reason": "The test is over.", "digest": waits.digest}
            verdicts.confirm(waits.pk, actor=second, act=act, **given)
    for run in Run.objects.filter(pk__in=ids, ended_at=None):
        actor = _person("oncall-a@acme.example")
        with suppress(RunEnded):  # what was settled above goes on by itself
            runs.cancel(run.pk, actor=actor, act=_act("runs.cancel"), reason="The test is over.")
