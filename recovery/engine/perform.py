"""Carrying out a Perform: inline by the run's owner, or handed to the senders; and amending one not yet attempted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from recovery import failpoints
from recovery.contract import EffectRequest, Perform
from recovery.engine import approvals, endings, finish, intents, lookfirst, outbound, recovered, snapshots
from recovery.engine.decide import decide
from recovery.engine.intents import Intent, Taken, Undeclared
from recovery.engine.memory import Pending
from recovery.engine.session import Session
from recovery.traffic import admission
from runs import record
from runs.errors import KeyMismatch, LostRace, NoPermit
from runs.models import Approval, Dependency, Effect, Group, Person, Signal
from runs.record import Admission, Change, Entry
from runs.states import EffectState, EventKind


def perform(s: Session, transition: Perform) -> str:
    """Record the effects that a step asks for and send the one that may go inline."""
    alone = len(transition.requests) == 1
    generations: list[int | Taken] = [1] * len(transition.requests)
    for again in range(3):
        try:
            return _perform(s, transition, generations, alone)
        except LostRace as error:
            # A key that is taken is met only when the database says so: looking first would cost each effect a query.
            if error.facts.get("thing") != "effect_one_intent" or again == 2:
                raise
            s.ordinal = None
            # The effect that has the key may be the one whose outcome is not committed yet.
            s.flush()
            generations = [
                intents.resolve(s.workspace, s.id, r, intents.key_of(s.run, r, s.watch.now()))
                for r in transition.requests
            ]
    raise AssertionError("unreachable")


def _perform(s: Session, transition: Perform, generations: list[int | Taken], alone: bool) -> str:
    now = s.watch.now()
    ids: list[UUID] = []
    new: list[Intent] = []
    met: list[Effect] = []
    entries: list[Entry] = []
    for request, taken in zip(transition.requests, generations, strict=True):
        if isinstance(taken, Taken):
            ids.append(taken.effect.pk)
            met.append(taken.effect)
            continue
        intent = intents.build(s.run, request, ordinal=s.next_ordinal(), now=now, generation=taken)
        ids.append(intent.row["id"])
        found = recovered.already(s, intent, now)
        if found is not None:
            met.append(found.effect)
            entries.append(found.entry)
        else:
            new.append(intent)
    s.memory.pending = Pending(ids, transition.then, dict(transition.on), many=not alone)
    s.memory.step = transition.then
    entries += [_meet(s, effect) for effect in met if not effect._state.adding]
    if len(new) == 1 and not met and intents.may_go_inline(new[0], alone, now) and not _looks_first(s, new[0]):
        try:
            return _inline(s, new[0])
        except NoPermit:
            # None is free now: the effect waits its turn with the senders.
            s.fresh = None
    asked = [_ask(s, intent) for intent in new]
    entries += [entry for entry, _ in asked]
    if met and all(e.settled for e in met) and not new:
        s.commit(entries, run={"tries": 0}, why="effects_met")
        return ""
    return finish.wait_for_effects(s, [*met, *(effect for _, effect in asked)], entries=entries, changed=True)


def _looks_first(s: Session, intent: Intent) -> bool:
    return lookfirst.must_look(s.workspace, intent.request.contract, s.watch.now())


def _inline(s: Session, intent: Intent) -> str:
    """Commit intent and attempt together, send, and keep the outcome for the next commit."""
    contract = intent.request.contract
    row = {**intent.row, "state": EffectState.IN_FLIGHT, "attempts": 1, "inline": True}
    attempt = intents.attempt_row(row, n=1, token=int(s.run["token"]), worker=s.me.id)
    entry = Entry(
        EventKind.EFFECT_SENT,
        {**endings.told(row), "attempt": str(attempt["id"]), "n": 1, "how": "inline"},
        [
            record.new("effect", row, {"requested_at": 0}),
            record.new("attempt", attempt, intents.attempt_times(contract.timeout)),
        ],
    )
    s.open = [{"id": str(row["id"]), "state": row["state"], "version": 1, "attempt": str(attempt["id"])}]
    admit = Admission(ahead=admission.AHEAD_INLINE, budget=contract.retry.budget)
    done = s.commit([entry], run={"tries": 0}, why="before_effect", admission=admit)
    admission.wait(done)
    effect = Effect(**{**row, "requested_at": done.at})
    if contract.claims_before_send:
        try:
            outbound.claim(effect, attempt["id"])
        except LostRace:
            # Taken for lost before a byte left: somebody else settles it.
            return finish.wait_for_effects(s, [effect])
    sent = outbound.send(effect, attempt["id"], int(s.run["token"]), contract, committed_at=done.at, now=s.watch.now())
    ended = outbound.ended(
        effect,
        attempt["id"],
        1,
        sent,
        contract,
        s.run,
        committed_at=done.at,
        now=s.watch.now(),
    )
    failpoints.hit("advance.before_outcome")
    s.buffer.append(ended.entry)
    s.unsaved, s.settling = (effect, attempt["id"], sent), ended.effect
    s.open = [{"id": str(row["id"]), "state": ended.effect.state, "version": ended.effect.version}]
    if ended.effect.settled or ended.effect.state == EffectState.PARTIAL:
        s.fresh, s.shown = ended.effect, ended.evidence
        return ""
    return finish.wait_for_effects(s, [ended.effect])


def _ask(s: Session, intent: Intent) -> tuple[Entry, Effect]:
    """The entry of an effect that is handed over: ready, or waiting for its signatures; and the effect itself."""
    contract, rule, now = intent.request.contract, intent.request.signatures(), s.watch.now()
    state = EffectState.READY if rule is None else EffectState.AWAITING_APPROVAL
    row = {**intent.row, "state": state, "next_check_at": intent.row["deadline"]}
    effect = Effect(**row)
    approve_by = None if rule is None else min(now + rule.approve_within, row["deadline"])
    row["decision"] = decide(snapshots.asked(effect, approve_by), contract, now).as_json()
    times: dict[str, float] = {"requested_at": 0} if rule else {"requested_at": 0, "not_before": 0}
    changes = [record.new("effect", row, times)]
    if rule is None:
        return Entry(EventKind.EFFECT_ASKED, endings.told(row), changes), effect
    changes += approvals.ask(
        row,
        contract,
        run=s.run,
        requester=s.run["started_by_id"],
        editors=[],
        revision=1,
        supersedes=None,
        group=_group(s, rule.group),
        now=now,
    )
    return Entry(EventKind.APPROVAL_ASKED, {**endings.told(row), "revision": 1}, changes), effect


def _group(s: Session, slug: str) -> Group:
    found = Group.objects.filter(workspace_id=s.workspace, slug=slug).first()
    if found is None:
        raise Undeclared(f"this workspace has no group {slug!r}, which has to sign")
    return found


def _meet(s: Session, effect: Effect) -> Entry:
    link = {"workspace_id": s.workspace, "run_id": s.id, "effect_id": effect.pk}
    changes = [] if effect.run_id == s.id else [record.new("link", link, {"at": 0})]
    return Entry(
        EventKind.EFFECT_MET,
        {"effect": str(effect.pk), "owner": str(effect.run_id), "key": effect.key, "state": effect.state},
        changes,
    )


def amend(s: Session, transition: Perform, pending: Pending, effects: list[Effect], signal: Signal) -> str:
    """The same effects with other params: revision + 1, a new digest, the old request for signatures superseded.

    Only while nothing was attempted (invariant 3); what is no longer amendable is refused by the guard.
    """
    s.consume = signal
    by_key = {(e.operation, e.key): e for e in effects}
    entries: list[Entry] = []
    for request in transition.requests:
        key = intents.key_of(s.run, request, s.watch.now())
        effect = by_key.get((request.contract.operation, key))
        if effect is None:
            raise KeyMismatch(f"{signal.name} asked for another effect ({key}); only the same one can be amended")
        entries.append(_amend_one(s, request, effect, signal))
    s.memory.pending = Pending(pending.effects, transition.then, dict(transition.on) or pending.on, pending.many)
    s.memory.step = transition.then
    return finish.wait_for_effects(s, effects, entries=entries, changed=True)


def _amend_one(s: Session, request: EffectRequest, effect: Effect, signal: Signal) -> Entry:
    # It stays where it is, whatever is closed off now: its key is taken there.
    at = Dependency.objects.get(pk=effect.dependency_id)
    now = s.watch.now()
    built = intents.build(s.run, request, ordinal=effect.ordinal, now=now, generation=effect.generation, at=at)
    changed: dict[str, Any] = {
        name: built.row[name]
        for name in (
            "params",
            "target",
            "intent_digest",
            "request",
            "body",
            "describe",
            "stake",
            "irreversible",
        )
    }
    changed["revision"] = effect.revision + 1
    rule = request.signatures()
    changed["state"] = EffectState.READY if rule is None else EffectState.AWAITING_APPROVAL
    approve_by = None if rule is None else min(s.watch.now() + rule.approve_within, effect.deadline)
    as_asked = Effect(**{**built.row, "state": changed["state"], "deadline": effect.deadline})
    changed["decision"] = decide(snapshots.asked(as_asked, approve_by), request.contract, s.watch.now()).as_json()
    times = {"not_before": 0.0} if rule is None else None
    prior = [effect.state]
    changes: list[Change] = [
        record.move("effect", effect.pk, prior, changed, times=times, version=effect.version, bump=True)
    ]
    old = Approval.objects.filter(effect=effect).order_by("-revision").first()
    by = None
    if signal.sender_id is not None:
        by = Person.objects.filter(pk=signal.sender_id).values_list("name", flat=True).first()
    # Also where that request is over: whoever had a hand in it signs none of the later ones (R4).
    editors = sorted(approvals.hands_in(old)) if old else []
    if old is not None and old.state not in approvals.REPLACEABLE:
        old = None
    if signal.sender_id is not None:
        editors.append(str(signal.sender_id))
    if rule is not None:
        row = {**built.row, "id": effect.pk, "revision": effect.revision + 1}
        changes += approvals.ask(
            row,
            request.contract,
            run=s.run,
            requester=s.run["started_by_id"],
            editors=editors,
            revision=effect.revision + 1,
            supersedes=old,
            group=_group(s, rule.group),
            now=s.watch.now(),
            cause={"signal": signal.name, "who": by},
        )
    elif old is not None:
        cause = {"signal": signal.name, "who": by}
        changes += approvals.supersede(old, revision=effect.revision + 1, cause=cause)
    data = {
        **endings.told({**built.row, "id": effect.pk}),
        "revision": effect.revision + 1,
        "signal": signal.name,
        "by": by,
        "before": effect.params,
        "after": request.data,
    }
    return Entry(EventKind.EFFECT_AMENDED, data, changes)
