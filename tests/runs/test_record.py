"""``record.commit``: who may write, what is refused, what happens once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from runs import clock, doorbells, errors, record
from runs.models import Action, Attempt, Capacity, Effect, EffectLink, Event, Evidence, Review, Run, Signal
from runs.record import Act, Commit, Entry
from runs.states import EventKind
from tests.runs import make
from tests.runs.make import World


def test_accepting_a_run_writes_run_event_and_checkpoint_together(world: World) -> None:
    """Invariant 1: what was accepted is recorded."""
    run = Run.objects.get(pk=make.accept(world))
    assert (run.state, run.head_seq, run.checkpoint_seq, run.version) == ("accepted", 1, 1, 1)
    event = run.events.get()
    assert event.body["moves"] == [{"t": "run", "id": str(run.pk), "from": "", "to": "accepted"}]
    assert event.body["actor"] == str(world.person.pk)
    assert event.at == run.accepted_at == run.wake_at


def test_a_refusal_anywhere_in_a_commit_undoes_all_of_it(world: World) -> None:
    """Invariant 9: state and event are one transaction."""
    run = make.accept(world)
    ready, unknown = (make.effect_in(world, run, state) for state in ("ready", "unknown"))
    before = make.kinds(run)
    with pytest.raises(errors.IllegalMove):
        record.commit(
            Commit(
                world.ws,
                run,
                [
                    Entry(EventKind.EFFECT_DELAYED, {}, [record.move("effect", ready.pk, None, {"attempts": 1})]),
                    Entry(
                        EventKind.EFFECT_DELAYED,
                        {},
                        [record.move("effect", unknown.pk, None, {"state": "ready"})],
                    ),
                ],
                checkpoint=make.checkpoint(world, run, 2),
            )
        )
    ready.refresh_from_db()
    assert ready.attempts == 0
    assert make.kinds(run) == before
    assert Run.objects.get(pk=run).checkpoint_seq == 1


def test_an_old_token_changes_no_state_and_its_answer_is_kept(world: World) -> None:
    """Invariant 6."""
    run = make.accept(world)
    lease = make.leased(world, run)
    effect, attempt = make.send(world, run, token=lease.token)
    with pytest.raises(errors.StaleOwner) as refused:
        make.write(
            world,
            run,
            record.move("effect", effect, ["in_flight"], {"state": "unknown"}),
            token=lease.token - 1,
        )
    assert refused.value.facts == {"token": lease.token - 1, "now": lease.token}
    assert Effect.objects.get(pk=effect).state == "in_flight"
    answer = make.evidence_row(world, run, effect, attempt_id=attempt)
    make.write(world, run, record.new("evidence", answer), kind=EventKind.EVIDENCE_RECEIVED)
    assert Evidence.objects.get(effect_id=effect).attempt_id == attempt


def test_a_token_is_worth_nothing_once_the_lease_was_given_back(world: World) -> None:
    run = make.accept(world)
    lease = make.leased(world, run)
    back = record.run_moves({"state": "waiting", "waiting_on": "event", "lease_owner": None})
    make.write(world, run, back, token=lease.token)
    with pytest.raises(errors.StaleOwner):
        make.write(world, run, token=lease.token)


def test_a_person_who_read_an_older_version_is_refused(world: World) -> None:
    run = make.accept(world)
    make.write(world, run, record.run_moves({}, bump=True))
    with pytest.raises(errors.StaleVersion) as refused:
        make.write(world, run, version=1)
    assert refused.value.facts == {"thing": "run", "seen": 1, "now": 2}
    make.write(world, run, version=2)


def test_an_effect_has_a_version_of_its_own(world: World) -> None:
    run = make.accept(world)
    effect = make.effect_in(world, run, "unknown")
    make.write(world, run, record.move("effect", effect.pk, ["unknown"], {"checks": 1}, bump=True))
    with pytest.raises(errors.StaleVersion) as refused:
        make.write(world, run, record.move("effect", effect.pk, None, {"checks": 2}, version=1))
    assert refused.value.facts == {"thing": "effect", "seen": 1, "now": 2}


def test_a_change_whose_prior_state_is_gone_lost_the_race(world: World) -> None:
    """Every authoritative write names the state it starts from; zero rows is a refusal."""
    run = make.accept(world)
    effect = make.effect_in(world, run, "unknown")
    make.write(world, run, record.move("effect", effect.pk, ["unknown"], {"state": "in_flight"}))
    with pytest.raises(errors.LostRace) as refused:
        make.write(world, run, record.move("effect", effect.pk, ["unknown"], {"state": "partial"}))
    assert refused.value.facts == {"thing": "effect", "id": str(effect.pk), "state": "in_flight"}
    assert Effect.objects.get(pk=effect.pk).state == "in_flight"


def test_what_was_decided_too_long_ago_is_not_carried_out(world: World) -> None:
    """At ``before`` itself it is over; nothing of the commit stays."""
    run = make.accept(world)
    kinds = make.kinds(run)
    with pytest.raises(errors.LostRace) as refused:
        record.commit(Commit(world.ws, run, [Entry(EventKind.RUN_ADVANCED)], before=clock.now()))
    assert refused.value.facts["thing"] == "decision"
    assert make.kinds(run) == kinds
    record.commit(Commit(world.ws, run, [Entry(EventKind.RUN_ADVANCED)], before=clock.now() + timedelta(minutes=1)))
    assert len(make.kinds(run)) == len(kinds) + 1


def test_the_runs_own_prior_state_guards_too(world: World) -> None:
    run = make.accept(world)
    with pytest.raises(errors.LostRace):
        make.write(world, run, record.run_moves({"state": "cancelling"}, prior=["waiting"]))


def test_one_intent_is_one_effect(world: World) -> None:
    """Invariant 3: the second insert of the same operation, key and generation is a lost race."""
    run, other = make.accept(world), make.accept(world)
    make.write(world, run, record.new("effect", make.effect_row(world, run, "ready", key="refund:1")))
    with pytest.raises(errors.LostRace):
        make.write(world, other, record.new("effect", make.effect_row(world, other, "ready", key="refund:1")))
    freed = make.effect_row(world, other, "ready", key="refund:1", generation=2)
    make.write(world, other, record.new("effect", freed))
    assert Effect.objects.filter(key="refund:1").count() == 2


def test_an_effect_has_one_live_attempt(world: World) -> None:
    """Invariant 2 and single flight: also where the other side knows no keys."""
    run = make.accept(world)
    effect, attempt = make.send(world, run)
    with pytest.raises(errors.LostRace):
        make.write(world, run, record.new("attempt", make.attempt_row(world, run, effect, n=2)))
    make.write(world, run, record.move("attempt", attempt, ["committed"], {"state": "lost"}, times={"ended_at": 0}))
    make.write(world, run, record.new("attempt", make.attempt_row(world, run, effect, n=2)))
    assert list(Attempt.objects.filter(effect=effect).order_by("n").values_list("state", flat=True)) == [
        "lost",
        "committed",
    ]


def test_permits_go_up_and_back_and_end_at_the_limit(world: World) -> None:
    """Invariant 12's ground: capacity counts live attempts, in the transaction that makes or ends them."""
    Capacity.objects.update(max_in_flight=2)
    run = make.accept(world)
    _, first = make.send(world, run)
    _, second = make.send(world, run)
    assert Capacity.objects.get().in_flight == 2
    with pytest.raises(errors.NoPermit):
        make.send(world, run)
    assert Effect.objects.count() == 2
    make.write(world, run, record.move("attempt", first, ["committed"], {"state": "claimed"}))
    assert Capacity.objects.get().in_flight == 2
    make.write(world, run, record.move("attempt", first, ["claimed"], {"state": "answered"}))
    make.write(world, run, record.move("attempt", second, ["committed"], {"state": "lost"}))
    assert Capacity.objects.get().in_flight == 0
    make.write(world, run, record.move("attempt", second, ["lost"], {"state": "late"}))
    assert Capacity.objects.get().in_flight == 0


def test_a_permit_is_handed_on_within_one_commit(world: World) -> None:
    """An answer and the next send share a commit; at the limit of one, that still works."""
    Capacity.objects.update(max_in_flight=1)
    run = make.accept(world)
    _, attempt = make.send(world, run)
    effect = make.effect_row(world, run, "in_flight")
    make.write(
        world,
        run,
        record.move("attempt", attempt, ["committed"], {"state": "answered"}),
        record.new("effect", effect),
        record.new("attempt", make.attempt_row(world, run, effect["id"])),
    )
    assert Capacity.objects.get().in_flight == 1


def test_the_same_action_twice_is_one_event(world: World) -> None:
    """Invariant 15: the second press gets the first result."""
    run = make.accept(world)
    act = Act.over(uuid4(), "runs.cancel", {"reason": "by mistake"})

    def press(act: Act, **of: Any) -> record.Committed:
        given = {"actor": world.person.pk, **of}
        return make.write(world, run, act=act, facts={"n": 1}, kind=EventKind.RUN_CANCEL_ASKED, **given)

    first, again = press(act), press(act)
    assert (first.replayed, again.replayed) == (False, True)
    assert (again.first, again.last, again.at, again.facts) == (first.first, first.last, first.at, {"n": 1})
    assert make.kinds(run).count("run.cancel_asked") == 1
    assert Event.objects.filter(run_id=run).latest("seq").body["action"] == str(act.id)
    assert Action.objects.get().result["run"] == str(run)


def test_a_replay_is_answered_even_with_an_old_version(world: World) -> None:
    """StaleVersion is for another id: the first press changed the version itself."""
    run = make.accept(world)
    act = Act(uuid4(), "runs.cancel", "d")
    change = record.run_moves({"state": "cancelling"})
    make.write(world, run, change, act=act, actor=world.person.pk, version=1)
    assert make.write(world, run, change, act=act, actor=world.person.pk, version=1).replayed
    with pytest.raises(errors.StaleVersion):
        make.write(world, run, change, act=Act(uuid4(), "runs.cancel", "d"), actor=world.person.pk, version=1)


def test_an_action_id_with_another_body_is_refused(world: World) -> None:
    run = make.accept(world)
    id = uuid4()
    make.write(world, run, act=Act.over(id, "runs.cancel", {"reason": "a"}), actor=world.person.pk)
    with pytest.raises(errors.ActionMismatch) as refused:
        make.write(world, run, act=Act.over(id, "runs.cancel", {"reason": "b"}), actor=world.person.pk)
    assert refused.value.status == 422
    assert make.kinds(run).count("run.advanced") == 1


def test_an_action_id_counts_by_actor_and_route(world: World) -> None:
    run = make.accept(world)
    act = Act(uuid4(), "runs.cancel", "d")
    make.write(world, run, act=act, actor=world.person.pk)
    assert not make.write(world, run, act=act, actor=world.second.pk).replayed
    assert not make.write(world, run, act=Act(act.id, "runs.signal", "d"), actor=world.person.pk).replayed


def test_a_refused_action_is_not_remembered(world: World) -> None:
    run = make.accept(world)
    act = Act(uuid4(), "runs.cancel", "d")
    with pytest.raises(errors.StaleVersion):
        make.write(world, run, act=act, actor=world.person.pk, version=7)
    assert not make.write(world, run, act=act, actor=world.person.pk, version=1).replayed


def test_the_digest_of_an_action_ignores_the_order_of_its_keys() -> None:
    id = uuid4()
    assert Act.over(id, "r", {"a": 1, "b": 2}).digest == Act.over(id, "r", {"b": 2, "a": 1}).digest
    assert Act.over(id, "r", {"a": 1}).digest != Act.over(id, "r", {"a": "1"}).digest


def test_what_has_no_run_goes_to_the_workspaces_chain(world: World) -> None:
    done = record.note(world.ws, EventKind.PERSON_SIGNED_IN, actor=world.person.pk, data={"from": "here"})
    event = Event.objects.get(workspace=world.workspace, run=None)
    assert (done.first, done.last, event.seq, event.data) == (1, 1, 1, {"from": "here"})
    world.workspace.refresh_from_db()
    assert (world.workspace.head_seq, world.workspace.head_hash) == (1, event.hash)


def test_nothing_here_is_not_found(world: World) -> None:
    run = make.accept(world)
    with pytest.raises(errors.NotFound):
        make.write(world, uuid4())
    with pytest.raises(errors.NotFound):
        record.note(uuid4(), EventKind.PERSON_SIGNED_IN, actor=None, data={})
    with pytest.raises(errors.NotFound):
        make.write(world, run, record.move("effect", uuid4(), None, {"checks": 1}))


def test_a_run_changes_only_its_own_rows(world: World) -> None:
    """A commit locks one run; an effect of another one is not found through it."""
    mine, theirs = make.accept(world), make.accept(world)
    effect = make.effect_in(world, theirs, "unknown")
    with pytest.raises(errors.NotFound):
        make.write(world, mine, record.move("effect", effect.pk, None, {"checks": 1}))


def test_asking_for_an_open_review_again_changes_nothing(world: World) -> None:
    run = make.accept(world)
    subject = uuid4()
    row = {
        "workspace_id": world.ws,
        "run_id": run,
        "kind": "outcome_unknown",
        "subject": subject,
        "state": "open",
        "severity": "high",
    }
    for _ in range(2):
        make.write(world, run, record.new("review", row, {"opened_at": 0, "due_at": 1200}))
    review = Review.objects.get(subject=subject)
    assert (review.due_at - review.opened_at).total_seconds() == 1200
    assert Event.objects.filter(run_id=run).latest("seq").body["moves"] == []
    make.write(world, run, record.close_reviews(subject, ["quarantined"]))
    assert Review.objects.get(subject=subject).state == "open"
    make.write(world, run, record.close_reviews(subject))
    assert Review.objects.get(subject=subject).closed_at is not None


def test_a_signal_is_consumed_once(world: World) -> None:
    run = make.accept(world)
    row = {"id": record.new_id(), "workspace_id": world.ws, "run_id": run, "name": "paid", "payload": {}}
    make.write(world, run, record.new("signal", row, {"received_at": 0}))
    consume = record.move("signal", row["id"], None, {}, times={"consumed_at": 0})
    make.write(world, run, consume)
    with pytest.raises(errors.LostRace):
        make.write(world, run, consume)
    assert Signal.objects.get().consumed_at is not None


def test_a_link_to_another_runs_effect_is_made_once(world: World) -> None:
    owner, follower = make.accept(world), make.accept(world)
    effect = make.effect_in(world, owner, "unknown")
    row = {"workspace_id": world.ws, "run_id": follower, "effect_id": effect.pk}
    for _ in range(2):
        make.write(world, follower, record.new("link", row, {"at": 0}))
    assert EffectLink.objects.count() == 1


def test_a_column_that_does_not_exist_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(TypeError, match="effect has no column colour"):
        record.new("effect", {"colour": "red"})


def test_a_checkpoint_must_follow_the_last_one(world: World) -> None:
    run = make.accept(world)
    with pytest.raises(errors.StaleOwner):
        make.write(world, run, checkpoint=make.checkpoint(world, run, 3))
    make.write(world, run, checkpoint=make.checkpoint(world, run, 2))
    assert Run.objects.get(pk=run).checkpoint_seq == 2


def test_what_the_database_refuses_for_another_reason_is_not_renamed(world: World) -> None:
    run = make.accept(world)
    with pytest.raises(IntegrityError):
        make.write(world, run, record.run_moves({"state": "cancelling", "ended_at": "2030-01-01T00:00:00Z"}))


@pytest.mark.parametrize(
    ("effects", "waiting_on", "woken"),
    [
        (["in_flight", "awaiting_approval", "unknown"], "unknown", False),
        (["in_flight", "disputed"], "unknown", False),
        (["in_flight", "awaiting_approval"], "approval", False),
        (["succeeded", "ready"], "in_flight", False),
        (["succeeded", "partial"], "in_flight", True),
    ],
)
def test_reckon_says_what_is_most_urgent_and_wakes_when_nothing_is_open(
    world: World, effects: list[str], waiting_on: str, woken: bool
) -> None:
    run = make.run_in(world, "accepted", step="begin").pk
    make.write(world, run, record.run_moves({"state": "running"}))
    make.write(world, run, record.run_moves({"state": "waiting", "waiting_on": "in_flight"}))
    for state in effects:
        make.effect_in(world, run, state)
    make.write(world, run, record.reckon())
    row = Run.objects.get(pk=run)
    assert row.waiting_on == waiting_on
    assert (row.wake_at is not None) is woken


def test_reckon_leaves_a_run_alone_whose_owner_is_at_work(world: World) -> None:
    """The owner looks for itself, also as it gives the lease back; afterwards anybody's reckoning makes it due."""
    run = make.accept(world)
    token = make.leased(world, run).token
    make.write(world, run, record.reckon(wake=True), token=token)
    assert Run.objects.get(pk=run).wake_at is None
    back = record.run_moves({"state": "waiting", "waiting_on": "in_flight", "lease_owner": None})
    make.write(world, run, back, record.reckon(), token=token)
    assert Run.objects.get(pk=run).wake_at is None
    make.write(world, run, record.reckon())
    assert Run.objects.get(pk=run).wake_at is not None


def test_doorbells_ring_after_the_commit_and_not_for_a_refusal(
    world: World, django_capture_on_commit_callbacks: Any
) -> None:
    run = make.accept(world)
    rings: list[doorbells.Ring] = []
    doorbells.register(rings.append)
    try:
        effect = make.effect_row(world, run, "ready")
        with django_capture_on_commit_callbacks(execute=True):
            make.write(world, run, record.new("effect", effect), kind=EventKind.EFFECT_ASKED)
            assert rings == []
        with django_capture_on_commit_callbacks(execute=True), pytest.raises(errors.StaleVersion):
            make.write(world, run, version=9)
        with (
            django_capture_on_commit_callbacks(execute=True),
            pytest.raises(RuntimeError),
            transaction.atomic(),
        ):
            make.write(world, run)
            raise RuntimeError("after the commit call, before the transaction's end")
    finally:
        doorbells.unregister(rings.append)
    assert [(ring.kinds, ring.ready, ring.wake) for ring in rings] == [
        (("effect.asked",), (effect["id"],), True),
    ]
