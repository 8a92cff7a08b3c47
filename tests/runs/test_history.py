"""History: append-only, chained, and enough to know every state (invariant 9)."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction

from runs import clock, errors, record
from runs.history import chain, fold
from runs.models import Attempt, Effect, Event, Evidence, Run, Workspace
from runs.record import Change
from runs.states import ATTEMPT_LIVE, EFFECT_SETTLED, TRANSITIONS, EventKind
from tests.runs import make
from tests.runs.make import World


@pytest.mark.parametrize("role", ["origin", "replica"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs_event SET kind = 'run.failed'",
        "UPDATE runs_event SET text = text",
        "DELETE FROM runs_event",
        "TRUNCATE runs_event",
        "UPDATE runs_evidence SET claim = 'not_found'",
        "DELETE FROM runs_evidence",
        "TRUNCATE runs_evidence",
    ],
)
def test_history_and_evidence_are_not_edited(world: World, statement: str, role: str) -> None:
    """Also with session_replication_role = replica, which switches ordinary triggers off."""
    run = make.accept(world)
    effect, _ = make.send(world, run)
    make.write(world, run, record.new("evidence", make.evidence_row(world, run, effect)))
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"SET LOCAL session_replication_role = {role}")
        cursor.execute(statement)
    assert (Event.objects.count(), Evidence.objects.count()) == (3, 1)


def test_evidence_is_not_edited_by_the_writer_either(world: World) -> None:
    run = make.accept(world)
    effect, _ = make.send(world, run)
    row = make.evidence_row(world, run, effect, id=record.new_id())
    make.write(world, run, record.new("evidence", row))
    with pytest.raises(DatabaseError, match="append-only"):
        make.write(world, run, record.move("evidence", row["id"], None, {"claim": "not_found"}))


def test_an_event_says_who_when_why_and_what_moved(world: World) -> None:
    run = make.accept(world)
    effect, _ = make.send(world, run)
    act = record.Act.over(record.new_id(), "effects.verdict", {})
    record.commit(
        record.Commit(
            world.ws,
            run,
            [
                record.Entry(
                    EventKind.EFFECT_UNKNOWN,
                    {"after": 20},
                    [record.move("effect", effect, None, {"state": "unknown"})],
                )
            ],
            actor=world.person.pk,
            behalf="shop",
            reason="no answer came",
            act=act,
        )
    )
    event = Event.objects.filter(run_id=run).latest("seq")
    previous = Event.objects.get(run_id=run, seq=event.seq - 1)
    assert event.body == {
        "v": 1,
        "workspace": str(world.ws),
        "run": str(run),
        "seq": event.seq,
        "prev": previous.hash,
        "at": event.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "kind": "effect.unknown",
        "actor": str(world.person.pk),
        "behalf": "shop",
        "action": str(act.id),
        "reason": "no answer came",
        "token": None,
        "moves": [{"t": "effect", "id": str(effect), "from": "in_flight", "to": "unknown"}],
        "data": {"after": 20},
    }
    assert event.hash == hashlib.sha256(event.text.encode()).hexdigest()


def test_the_time_of_an_event_is_the_databases(world: World) -> None:
    """A worker's own clock decides nothing."""
    run = make.accept(world)
    clock.shift(timedelta(days=3))
    done = make.write(world, run)
    assert done.at - Run.objects.get(pk=run).accepted_at > timedelta(days=2)


# --- folding and verifying after many random moves


def _random_change(world: World, run: UUID, dice: random.Random) -> list[Change]:
    """One legal thing to do: a new effect, an attempt, a legal move of either, or a review."""
    what = dice.choice(["effect", "effect", "attempt", "move", "move", "move", "end", "review"])
    effects = list(Effect.objects.filter(run_id=run).order_by("id"))
    if what == "effect" or not effects:
        state = dice.choice(sorted(b for a, b in TRANSITIONS["effect"] if a == ""))
        return [record.new("effect", make.effect_row(world, run, state))]
    effect = dice.choice(effects)
    if what == "attempt":
        tries = Attempt.objects.filter(effect=effect)
        if tries.filter(state__in=ATTEMPT_LIVE).exists():
            return []
        return [record.new("attempt", make.attempt_row(world, run, effect.pk, n=tries.count() + 1))]
    if what == "end":
        attempts = list(Attempt.objects.filter(run_id=run).order_by("id"))
        if not attempts:
            return []
        attempt = dice.choice(attempts)
        targets = sorted(b for a, b in TRANSITIONS["attempt"] if a == attempt.state)
        return [record.move("attempt", attempt.pk, [attempt.state], {"state": dice.choice(targets)})] if targets else []
    if what == "review":
        row = {
            "workspace_id": world.ws,
            "run_id": run,
            "effect_id": effect.pk,
            "kind": "outcome_unknown",
            "subject": effect.pk,
            "state": "open",
            "severity": "high",
        }
        if dice.random() < 0.5:
            return [record.close_reviews(effect.pk)]
        return [record.new("review", row, {"opened_at": 0, "due_at": 1200})]
    targets = sorted(b for a, b in TRANSITIONS["effect"] if a == effect.state)
    if not targets:
        return []
    target = dice.choice(targets)
    settled = {"settled_at": clock.now() if target in EFFECT_SETTLED else None}
    return [record.move("effect", effect.pk, [effect.state], {"state": target, **settled}), record.reckon()]


@pytest.mark.parametrize("seed", range(5))
def test_folding_the_history_gives_the_tables_after_any_legal_moves(world: World, seed: int) -> None:
    """Invariant 9: history and projection are one thing, and the chain verifies; refusals leave no trace."""
    dice = random.Random(seed)
    run = make.accept(world)
    make.leased(world, run)
    moved = refused = 0
    for _ in range(120):
        before = Run.objects.get(pk=run).head_seq
        changes = _random_change(world, run, dice)
        try:
            make.write(world, run, *changes)
            moved += bool(changes)
        except errors.NoPermit:
            refused += 1
            assert Run.objects.get(pk=run).head_seq == before
        if dice.random() < 0.2:
            with pytest.raises(errors.RunsError):
                make.write(world, run, *changes, version=10_000)
    row = Run.objects.get(pk=run)
    assert moved > 60
    assert fold.differences(row) == []
    assert chain.verify_run(row) == chain.ChainReport(row.head_seq)
    assert row.head_seq == Event.objects.filter(run_id=run).count() == 122 - refused


def test_a_state_changed_behind_the_writer_shows(world: World) -> None:
    run = make.accept(world)
    effect = make.effect_row(world, run, "ready")
    make.write(world, run, record.new("effect", effect))
    Effect.objects.filter(pk=effect["id"]).update(state="in_flight")
    assert fold.differences(Run.objects.get(pk=run)) == [f"effect {effect['id']}: history 'ready', table 'in_flight'"]


def test_a_move_that_does_not_continue_is_found_by_folding(world: World) -> None:
    run = make.accept(world)
    make.leased(world, run)
    events = list(Event.objects.filter(run_id=run).order_by("seq"))
    with pytest.raises(ValueError, match=r"event #2 moves"):
        fold.fold(events[1:])


# --- tampering as the owner of the tables, who can switch the triggers off


def _tamper(statement: str, *params: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE runs_event DISABLE TRIGGER USER")
        cursor.execute(statement, params)
        assert cursor.rowcount > 0
        cursor.execute("ALTER TABLE runs_event ENABLE ALWAYS TRIGGER event_is_kept")


def _rewrite(run: UUID, seq: int, edit: Callable[[dict[str, object]], None], *, rehash: bool = True) -> None:
    """Edit an event's text as an owner would, with a hash that fits the new text."""
    event = Event.objects.get(run_id=run, seq=seq)
    body = json.loads(event.text)
    edit(body)
    text = json.dumps(body)
    digest = hashlib.sha256(text.encode()).hexdigest() if rehash else event.hash
    _tamper("UPDATE runs_event SET text = %s, hash = %s WHERE id = %s", text, digest, event.pk)


@pytest.fixture
def chained(world: World) -> UUID:
    """A run with six events."""
    run = make.accept(world)
    for n in range(5):
        make.write(world, run, kind=EventKind.RUN_CHECKED, actor=world.person.pk, reason=f"look {n}")
    return run


def _report(run: UUID) -> chain.ChainReport:
    return chain.verify_run(Run.objects.get(pk=run))


def test_an_untouched_chain_verifies(chained: UUID) -> None:
    assert _report(chained) == chain.ChainReport(6)
    assert _report(chained).ok


def test_an_edited_field_is_found_at_its_number(chained: UUID) -> None:
    _rewrite(chained, 3, lambda body: body.update(reason="never said"), rehash=False)
    assert _report(chained) == chain.ChainReport(2, 3, "#3 does not match its hash")


def test_an_edited_field_with_a_fitting_hash_is_found_at_the_next(chained: UUID) -> None:
    _rewrite(chained, 3, lambda body: body.update(reason="never said"))
    assert _report(chained) == chain.ChainReport(3, 4, "#4 does not follow the one before")


def test_the_last_event_recomputed_does_not_fit_the_head(chained: UUID) -> None:
    _rewrite(chained, 6, lambda body: body.update(reason="never said"))
    assert _report(chained).bad == 7


@pytest.mark.parametrize("column", ["kind = 'run.failed'", "at = at - interval '1 second'", "actor_id = NULL"])
def test_a_column_that_differs_from_the_text_is_found(chained: UUID, column: str) -> None:
    """Lists read the columns; only the text is hashed: so the two must agree."""
    _tamper(f"UPDATE runs_event SET {column} WHERE run_id = %s AND seq = 4", chained)
    report = _report(chained)
    assert (report.good, report.bad) == (3, 4)


def test_a_deleted_middle_is_found(chained: UUID) -> None:
    _tamper("DELETE FROM runs_event WHERE run_id = %s AND seq = 3", chained)
    assert _report(chained) == chain.ChainReport(2, 3, "#3 is missing")


def test_a_deleted_tail_is_found(chained: UUID) -> None:
    _tamper("DELETE FROM runs_event WHERE run_id = %s AND seq > 4", chained)
    assert _report(chained) == chain.ChainReport(4, 5, "the head names #6, the chain ends at #4")


def test_two_events_that_changed_places_are_found(chained: UUID) -> None:
    _tamper("UPDATE runs_event SET seq = seq + 100 WHERE run_id = %s AND seq IN (3, 4)", chained)
    _tamper("UPDATE runs_event SET seq = 207 - seq - 100 WHERE run_id = %s AND seq > 100", chained)
    assert _report(chained).bad == 3


def test_an_event_of_another_run_is_found(world: World, chained: UUID) -> None:
    other = make.accept(world)
    _tamper("DELETE FROM runs_event WHERE run_id = %s AND seq = 1", chained)
    _tamper("UPDATE runs_event SET run_id = %s WHERE run_id = %s", chained, other)
    assert _report(chained).bad == 1


def test_an_event_whose_text_cannot_be_read_is_found(chained: UUID) -> None:
    text = "not json"
    digest = hashlib.sha256(text.encode()).hexdigest()
    _tamper("UPDATE runs_event SET text = %s, hash = %s WHERE run_id = %s AND seq = 2", text, digest, chained)
    assert _report(chained).bad == 2


def test_the_workspaces_own_chain_verifies_and_shows_tampering(world: World) -> None:
    for n in range(3):
        record.note(world.ws, EventKind.PERSON_SIGNED_IN, actor=world.person.pk, data={"n": n})
    assert chain.verify_workspace(Workspace.objects.get(pk=world.ws)) == chain.ChainReport(3)
    _tamper("UPDATE runs_event SET text = replace(text, '\"n\": 1', '\"n\": 9') WHERE run_id IS NULL AND seq = 2")
    assert chain.verify_workspace(Workspace.objects.get(pk=world.ws)).bad == 2
