"""Deciding an unknown outcome: evidence, the second person, versions (invariants 4, 9, 14 and 15, D2, D3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from recovery.actions import verdicts as actions
from recovery.actions.common import Done
from recovery.engine.changes import settle_effect
from recovery.engine.refusals import AlreadyDone, DecisionWaiting, ItemUnknown
from recovery.engine.verdicts import drop_proposed
from runs import access, errors, record
from runs.models import Action, Effect, Event, Evidence, Person, Review, Run, Verdict
from runs.record import Act
from runs.states import EffectState, EventKind, RunState, VerdictSays, VerdictState
from tests.recovery.stage import Stage, act, later, stage

ITEM = {"id": "re_77", "status": "succeeded"}


@pytest.fixture
def s(db: None) -> Stage:
    return stage()


def decide(effect: Effect, who: Person, says: str, how: Act | None = None, **given: Any) -> Done:
    effect.refresh_from_db()
    told: dict[str, Any] = {"reason": "seen it", "evidence": [], "version": effect.version, **given}
    return actions.record(effect.pk, actor=who, act=how or act("verdict"), says=says, **told)


def answer(verdict: Verdict, who: Person, yes: bool = True, how: Act | None = None, **given: Any) -> Done:
    told: dict[str, Any] = {"reason": "I agree", "digest": verdict.digest, **given}
    return actions.confirm(verdict.pk, actor=who, act=how or act("confirm"), confirm=yes, **told)


def found(s: Stage, effect: Effect, strength: str = "agrees", **row: Any) -> UUID:
    return s.evidence(effect, "happened", strength, detail={"item": ITEM}, **row)


def not_found_twice(s: Stage, effect: Effect, wait: float = 46, apart: float = 30) -> list[UUID]:
    later(seconds=wait)
    first = s.evidence(effect, "not_found")
    later(seconds=apart)
    return [first, s.evidence(effect, "not_found")]


def proposed(s: Stage, effect: Effect, says: str = "did_not_happen") -> Verdict:
    done = decide(effect, s.oncall_a, says, statement="The merchant's portal shows nothing.")
    return Verdict.objects.get(pk=done.facts["verdict"])


def reviews(effect: Effect) -> list[str]:
    rows = Review.objects.filter(effect=effect, state="open").order_by("id")
    return list(rows.values_list("kind", flat=True))


# One person


def test_happened_on_a_readback_is_settled_by_one_person(s: Stage) -> None:
    """Walk a.5 to a.7."""
    effect = s.unknown()
    ticked = found(s, effect)
    done = decide(effect, s.oncall_a, "happened", evidence=[ticked])
    effect.refresh_from_db()
    verdict = Verdict.objects.get()
    assert done.facts["needs_second"] is False
    assert (verdict.state, verdict.evidence, verdict.confirmed_by) == (VerdictState.RECORDED, [ticked], None)
    assert (effect.state, effect.result, effect.settled_at) == (EffectState.SUCCEEDED, ITEM, done.at)
    assert effect.reason["code"] == "decided"
    assert reviews(effect) == []
    run = Run.objects.get(pk=effect.run_id)
    assert run.wake_at == done.at
    kinds = Event.objects.filter(run=run).order_by("-seq").values_list("kind", flat=True)[:2]
    assert list(kinds) == [EventKind.EFFECT_SETTLED, EventKind.VERDICT_RECORDED]
    assert done.event == run.head_seq
    s.sound(run.pk)


def test_did_not_happen_on_two_counting_not_founds_frees_the_key(s: Stage) -> None:
    effect = s.unknown()
    done = decide(effect, s.oncall_a, "did_not_happen", evidence=not_found_twice(s, effect))
    effect.refresh_from_db()
    assert (done.facts["needs_second"], done.facts["why"]) == (False, "not_found_twice")
    assert (effect.state, effect.result) == (EffectState.NOT_APPLIED, None)


@pytest.mark.parametrize("state", [EffectState.DISPUTED, EffectState.ACCEPTED])
def test_disputed_and_taken_can_be_decided_too(s: Stage, state: EffectState) -> None:
    effect = s.unknown()
    s.write(effect.run_id, record.move("effect", effect.pk, ["unknown"], {"state": state}))
    decide(effect, s.oncall_a, "happened", evidence=[found(s, effect, "proves")])
    effect.refresh_from_db()
    assert effect.state == EffectState.SUCCEEDED


def test_a_decision_under_an_ended_run_moves_no_run(s: Stage) -> None:
    """Invariant 5: evidence that came after the end opened a dispute."""
    effect = s.unknown()
    decide(effect, s.oncall_a, "did_not_happen", evidence=not_found_twice(s, effect))
    s.write(effect.run_id, record.run_moves({"state": RunState.EXPIRED, "waiting_on": ""}, times={"ended_at": 0}))
    disputed = {"state": EffectState.DISPUTED, "settled_at": None}
    s.write(effect.run_id, record.move("effect", effect.pk, ["not_applied"], disputed))
    before = Run.objects.get(pk=effect.run_id)
    decide(effect, s.oncall_a, "happened", evidence=[found(s, effect)])
    after = Run.objects.get(pk=effect.run_id)
    assert (after.state, after.ended_at, after.wake_at) == (before.state, before.ended_at, before.wake_at)
    assert Effect.objects.get(pk=effect.pk).state == EffectState.SUCCEEDED


# Two persons


@pytest.mark.parametrize("says", ["happened", "did_not_happen", "in_part"])
def test_a_word_alone_is_only_a_proposal(s: Stage, says: str) -> None:
    """D3, invariant 4: the effect stays unknown, its own review stays open, the run is not woken."""
    effect = s.unknown()
    woken = Run.objects.get(pk=effect.run_id).wake_at
    verdict = proposed(s, effect, says)
    version = effect.version
    effect.refresh_from_db()
    assert verdict.state == VerdictState.PROPOSED
    assert (effect.state, effect.version, verdict.effect_version) == (
        EffectState.UNKNOWN,
        version + 1,
        version + 1,
    )
    assert reviews(effect) == ["outcome_unknown", "confirm_decision"]
    assert Review.objects.get(kind="confirm_decision").subject == verdict.pk
    assert Run.objects.get(pk=effect.run_id).wake_at == woken
    (word,) = Evidence.objects.filter(effect=effect)
    assert (word.kind, word.strength, word.person_id) == ("statement", "word", s.oncall_a.pk)
    assert verdict.evidence == [word.pk]
    s.sound(effect.run_id)


def test_the_second_person_settles_it(s: Stage) -> None:
    effect = s.unknown()
    verdict = proposed(s, effect)
    done = answer(verdict, s.approver_b)
    verdict.refresh_from_db()
    effect.refresh_from_db()
    assert (verdict.state, verdict.confirmed_by, verdict.confirmed_at) == ("recorded", s.approver_b, done.at)
    assert effect.state == EffectState.NOT_APPLIED
    assert (effect.reason["facts"]["who"], effect.reason["facts"]["second"]) == ("Oncall A", "Approver B")
    assert reviews(effect) == []
    assert Run.objects.get(pk=effect.run_id).wake_at == done.at
    s.sound(effect.run_id)


def test_the_result_of_a_confirmed_word_says_that_it_is_one(s: Stage) -> None:
    effect = s.unknown("notices.notify", to="board", text="hello")
    answer(proposed(s, effect, "happened"), s.oncall_g)
    effect.refresh_from_db()
    assert (effect.state, effect.result) == (EffectState.SUCCEEDED, {"statement": True})


def test_items_of_in_part_survive_until_they_are_confirmed(s: Stage) -> None:
    effect = s.unknown()
    items = {"ch_1": "happened", "ch_2": "did_not_happen"}
    done = decide(effect, s.oncall_a, "in_part", statement="one of two", items=items)
    answer(Verdict.objects.get(pk=done.facts["verdict"]), s.approver_b)
    effect.refresh_from_db()
    assert (effect.state, effect.result, effect.settled_at) == (EffectState.PARTIAL, {"items": items}, None)


def test_the_second_person_refuses(s: Stage) -> None:
    effect = s.unknown()
    verdict = proposed(s, effect)
    answer(verdict, s.approver_b, yes=False)
    verdict.refresh_from_db()
    effect.refresh_from_db()
    assert (verdict.state, verdict.confirmed_by, effect.state) == (
        "refused",
        s.approver_b,
        EffectState.UNKNOWN,
    )
    assert effect.version == verdict.effect_version + 1
    assert reviews(effect) == ["outcome_unknown"]
    assert proposed(s, effect).state == VerdictState.PROPOSED
    s.sound(effect.run_id)


def test_the_first_person_may_take_it_back_but_not_confirm(s: Stage) -> None:
    effect = s.unknown()
    verdict = proposed(s, effect)
    with pytest.raises(errors.SamePerson) as refused:
        answer(verdict, s.oncall_a)
    assert refused.value.facts["names"] == ["Approver B", "Approver C", "Approver F", "Oncall G"]
    assert answer(verdict, s.oncall_a, yes=False).facts["taken_back"] is True
    verdict.refresh_from_db()
    assert (verdict.state, verdict.confirmed_by) == ("refused", None)


def test_another_account_of_the_same_owner_is_the_same_person(s: Stage) -> None:
    effect = s.unknown()
    Person.objects.filter(pk__in=[s.oncall_a.pk, s.approver_b.pk]).update(owner="alice")
    verdict = proposed(s, effect)
    for yes in (True, False):
        with pytest.raises(errors.SamePerson) as refused:
            answer(verdict, s.approver_b, yes)
        assert refused.value.facts["why"] == "owner"


def test_who_may_only_read_confirms_nothing(s: Stage) -> None:
    verdict = proposed(s, s.unknown())
    with pytest.raises(errors.NotAllowed) as refused:
        answer(verdict, s.auditor_d)
    assert refused.value.facts["permission"] == "confirm"
    with pytest.raises(errors.NotFound):
        answer(verdict, s.outsider_e)
    assert [line["code"] for line in s.refusals()] == ["not_allowed"]


def test_a_proposal_that_was_answered_is_answered_once(s: Stage) -> None:
    verdict = proposed(s, s.unknown())
    answer(verdict, s.approver_b)
    with pytest.raises(AlreadyDone) as refused:
        answer(verdict, s.approver_c, yes=False)
    assert (refused.value.facts["what"], refused.value.facts["who"]) == ("recorded", "Approver B")


def test_news_since_the_proposal_makes_confirming_stale(s: Stage) -> None:
    """Guarded by the effect's version: what the first person weighed is not what the second one would
    confirm.
    """
    effect = s.unknown()
    verdict = proposed(s, effect)
    found(s, effect, kind="callback")
    before = s.counts()
    with pytest.raises(errors.StaleVersion) as refused:
        answer(verdict, s.approver_b)
    assert refused.value.facts["kind"] == EventKind.EVIDENCE_RECEIVED
    assert s.counts() == before
    answer(verdict, s.approver_b, yes=False)
    assert Effect.objects.get(pk=effect.pk).state == EffectState.UNKNOWN


def test_evidence_that_settles_ends_the_proposal(s: Stage) -> None:
    effect = s.unknown()
    verdict = proposed(s, effect)
    effect.refresh_from_db()
    changes = settle_effect(effect, EffectState.SUCCEEDED, {"code": "proved", "facts": {}}, result=ITEM)
    s.write(effect.run_id, *drop_proposed(effect.pk), *changes, kind=EventKind.EFFECT_SETTLED)
    assert (Verdict.objects.get(pk=verdict.pk).state, reviews(effect)) == ("refused", [])
    with pytest.raises(AlreadyDone):
        answer(verdict, s.approver_b)
    s.sound(effect.run_id)


def test_another_digest_confirms_nothing(s: Stage) -> None:
    effect = s.unknown()
    with pytest.raises(errors.StaleVersion):
        answer(proposed(s, effect), s.approver_b, digest="0" * 64)
    assert Effect.objects.get(pk=effect.pk).state == EffectState.UNKNOWN


def test_a_second_decision_waits_for_the_first(s: Stage) -> None:
    effect = s.unknown()
    ticked = found(s, effect)
    stale = Effect.objects.get(pk=effect.pk).version
    proposed(s, effect)
    with pytest.raises(errors.StaleVersion) as refused:
        decide(effect, s.oncall_g, "happened", evidence=[ticked], version=stale)
    assert (refused.value.facts["kind"], refused.value.facts["who"]) == ("verdict.proposed", "Oncall A")
    with pytest.raises(DecisionWaiting) as also:
        decide(effect, s.oncall_g, "happened", evidence=[ticked])
    assert also.value.facts["who"] == "Oncall A"


# Refused


def test_who_may_decide(s: Stage) -> None:
    effect = s.unknown()
    ticked = [found(s, effect)]
    before = s.counts()
    with pytest.raises(errors.NotAllowed):
        decide(effect, s.approver_b, "happened", evidence=ticked)
    with pytest.raises(errors.NotFound):
        decide(effect, s.outsider_e, "happened", evidence=ticked)
    with pytest.raises(errors.NotFound):
        actions.record(uuid4(), actor=s.oncall_a, act=act(), says="happened", reason="x", evidence=ticked, version=1)
    assert s.counts() == before


def test_an_old_version_is_refused_with_what_came(s: Stage) -> None:
    effect = s.unknown()
    first = found(s, effect)
    seen = Effect.objects.get(pk=effect.pk).version
    s.evidence(effect, "rejected", "proves", kind="callback")
    with pytest.raises(errors.StaleVersion) as refused:
        decide(effect, s.oncall_a, "happened", evidence=[first], version=seen)
    facts = refused.value.facts
    assert (facts["seen"], facts["now"], facts["kind"]) == (seen, seen + 1, "evidence.received")
    assert facts["at"] == Event.objects.get(run_id=effect.run_id, seq=facts["event"]).at.isoformat()


def test_no_decision_without_evidence(s: Stage) -> None:
    effect, other = s.unknown(), s.unknown()
    foreign = found(s, other)
    before = s.counts()
    for given in (
        {},
        {"statement": "  "},
        {"evidence": [foreign]},
        {"evidence": [uuid4()], "statement": "x"},
    ):
        with pytest.raises(errors.EvidenceNeeded):
            decide(effect, s.oncall_a, "happened", **given)
    with pytest.raises(errors.ReasonNeeded):
        decide(effect, s.oncall_a, "happened", evidence=[found(s, effect)], reason="")
    assert Verdict.objects.count() == 0
    assert s.counts()[5] == before[5]


def test_an_unknown_item_keeps_the_whole_unknown(s: Stage) -> None:
    effect = s.unknown()
    for says, items in (("in_part", {"a": "unknown"}), ("happened", {"a": "happened"})):
        with pytest.raises(ItemUnknown):
            decide(effect, s.oncall_a, says, statement="x", items=items)


def test_what_is_settled_is_not_decided_again(s: Stage) -> None:
    effect = s.unknown()
    ticked = [found(s, effect)]
    decide(effect, s.oncall_a, "happened", evidence=ticked)
    with pytest.raises(errors.NotUnknown) as refused:
        decide(effect, s.oncall_g, "did_not_happen", evidence=ticked)
    assert (refused.value.facts["who"], refused.value.facts["says"]) == ("Oncall A", "happened")


@pytest.mark.parametrize("says", ["retry", "keep_waiting", "escalate", ""])
def test_waiting_and_handing_over_are_not_decisions(s: Stage, says: str) -> None:
    """D2."""
    with pytest.raises(ValueError, match="is not a valid VerdictSays"):
        decide(s.unknown(), s.oncall_a, says, statement="x")


# Twice, rolled back


def test_the_same_act_twice_counts_once(s: Stage) -> None:
    """Invariant 15, for one person and for the second."""
    one, two = s.unknown(), s.unknown()
    how, ticked = act("verdict"), [found(s, one)]
    version = Effect.objects.get(pk=one.pk).version
    verdict = proposed(s, two)
    once: list[Callable[[], Done]] = [
        lambda: decide(one, s.oncall_a, "happened", how, evidence=ticked, version=version),
        lambda: answer(verdict, s.approver_b, how=how),
    ]
    for do in once:
        first = do()
        after = s.counts()
        again = do()
        assert (again.replayed, again.event, again.facts) == (True, first.event, first.facts)
        assert s.counts() == after


def test_a_rollback_leaves_nothing(s: Stage, django_capture_on_commit_callbacks: Any) -> None:
    effect = s.unknown()
    ticked = [found(s, effect)]
    before = (s.counts(), Action.objects.count())

    class Later(Exception):
        pass

    with django_capture_on_commit_callbacks() as told, pytest.raises(Later), transaction.atomic():
        decide(effect, s.oncall_a, "happened", evidence=ticked)
        raise Later
    assert told == []
    assert (s.counts(), Action.objects.count()) == before
    assert Effect.objects.get(pk=effect.pk).state == EffectState.UNKNOWN


def test_a_right_that_is_taken_away_is_seen_inside(s: Stage) -> None:
    effect = s.unknown()
    ticked = [found(s, effect)]
    access.grant(s.oncall_a, s.here, ["auditor"])
    with pytest.raises(errors.NotAllowed):
        decide(effect, s.oncall_a, "happened", evidence=ticked)


def test_a_preview_says_who_must_agree(s: Stage) -> None:
    effect = s.unknown()
    ticked = found(s, effect)
    assert actions.weight_of(effect, VerdictSays.HAPPENED, [ticked]).second is False
    against = actions.weight_of(effect, VerdictSays.DID_NOT_HAPPEN, [])
    assert (against.second, against.code) == (True, "evidence_against")
