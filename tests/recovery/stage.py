"""One cast and a stage for what people decide: a refund that waits for signatures, a refund nobody knows
about.

Setup goes through the record's writer with the contracts of the demo; only people and workspaces are plain
rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from recovery.contract import registry
from recovery.engine import approvals, intents
from recovery.engine.changes import open_review
from recovery.engine.endings import told_of
from runs import access, clock, commits, record
from runs.checkpoints import codec
from runs.history import chain, fold
from runs.models import Approval, Capacity, Dependency, Effect, Event, Evidence, Group, Person, Run, Workspace
from runs.record import Act, Change, Commit, Entry
from runs.states import AttemptState, EffectState, EventKind, ReviewKind, RunState

SAW = {"sentence": "Sends USD 1,205.00", "language": "en", "evidence": []}


@dataclass
class Stage:
    """Oncall A started everything; Approvers B, C and F may sign; Outsider E belongs to the neighbour."""

    here: Workspace
    there: Workspace
    oncall_a: Person
    oncall_g: Person
    approver_b: Person
    approver_c: Person
    approver_f: Person
    auditor_d: Person
    outsider_e: Person
    approvers: Group
    runs: int = 0

    # What a test looks at

    def counts(self) -> tuple[int, ...]:
        """Rows that an action writes: it must be the same after a refusal and after a repeat."""
        return tuple(
            model.objects.count()  # type: ignore[attr-defined]
            for model in commits.THINGS.values()
        ) + (Event.objects.exclude(kind=EventKind.ACTION_REFUSED).count(),)

    def refusals(self) -> list[dict[str, Any]]:
        """What the workspace's own chain says was refused, oldest first."""
        rows = Event.objects.filter(workspace=self.here, run=None, kind=EventKind.ACTION_REFUSED)
        return [event.data for event in rows.order_by("seq")]

    def sound(self, run: UUID) -> None:
        """Fail unless the run's chain verifies and folding it gives the tables (invariant 9)."""
        row = Run.objects.get(pk=run)
        assert chain.verify_run(row).ok
        assert fold.differences(row) == []

    # What a test begins from

    def run(self, **row: Any) -> UUID:
        """A run of Oncall A's that has a worker's lease behind it and waits."""
        run = record.new_id()
        blob = codec.seal({"data": {}}, workspace=self.here.pk, run=run, seq=1)
        given = {
            "id": run,
            "workspace_id": self.here.pk,
            "type": "orders.cancel",
            "type_version": 1,
            "contract_digest": "d",
            "title": "Cancel order A-1",
            "principal": "svc-orders",
            "started_by_id": self.oncall_a.pk,
            "state": RunState.ACCEPTED,
            "step": "begin",
            **row,
        }
        first = Commit(
            self.here.pk,
            run,
            [Entry(EventKind.RUN_ACCEPTED)],
            actor=self.oncall_a.pk,
            checkpoint=record.Sealed(1, "accepted", codec.SCHEMA, blob),
        )
        record.accept(first, given, {"accepted_at": 0, "wake_at": 0})
        self.write(
            run,
            record.run_moves({"state": RunState.RUNNING, "wake_at": None}, prior=[RunState.ACCEPTED]),
            record.run_moves({"state": RunState.WAITING, "waiting_on": "in_flight"}),
        )
        return run

    def write(
        self, run: UUID, *changes: Change, kind: EventKind = EventKind.RUN_ADVANCED, **data: Any
    ) -> record.Committed:
        """One commit of the engine."""
        return record.commit(Commit(self.here.pk, run, [Entry(kind, data, changes)]))

    def row(self, run: UUID, state: str, operation: str = "payments.refund", **params: Any) -> dict[str, Any]:
        """The columns of a refund as the engine makes them."""
        self.runs += 1
        given = params
        if operation.endswith("refund"):
            given = {"charge": f"ch_{self.runs}", "amount": 120_500, "currency": "USD", **params}
        request = registry.effect_contract(operation, 1)(**given)
        columns = record.full_row("run", {}) | vars(Run.objects.get(pk=run))
        built = intents.build(columns, request, ordinal=self.runs, now=clock.now())
        return {**built.row, "state": state}

    def asked(self, *, editors: tuple[Person, ...] = (), **params: Any) -> Approval:
        """A refund above the limit, asked for by Oncall A, revision 1, nobody has signed."""
        run = self.run()
        row = self.row(run, EffectState.AWAITING_APPROVAL, **params)
        changes = self.ask(row, run, editors=editors)
        self.write(
            run,
            record.new("effect", row, {"requested_at": 0}),
            *changes,
            record.reckon(),
            kind=EventKind.APPROVAL_ASKED,
        )
        return Approval.objects.select_related("effect").get(effect_id=row["id"])

    def ask(
        self,
        row: dict[str, Any],
        run: UUID,
        *,
        editors: tuple[Person, ...] = (),
        supersedes: Approval | None = None,
        revision: int = 1,
    ) -> list[Change]:
        """The engine's changes that ask for signatures."""
        return approvals.ask(
            row,
            registry.effect_contract(row["operation"], 1),
            run=Run.objects.get(pk=run),
            requester=self.oncall_a.pk,
            editors=[p.pk for p in editors],
            revision=revision,
            supersedes=supersedes,
            group=self.approvers,
            now=clock.now(),
        )

    def amend(self, approval: Approval, amount: int, editor: Person | None = None) -> Approval:
        """The order changes: the same effect with another amount, the next revision."""
        self.write(approval.run_id, *self.amendment(approval, amount, editor), kind=EventKind.EFFECT_AMENDED)
        return Approval.objects.get(effect_id=approval.effect_id, revision=approval.revision + 1)

    def amendment(self, approval: Approval, amount: int, editor: Person | None = None) -> list[Change]:
        """The engine's changes of an amendment, guarded by the state as read."""
        effect = Effect.objects.get(pk=approval.effect_id)
        params = {**effect.params, "amount": amount}
        built = self.row(approval.run_id, EffectState.AWAITING_APPROVAL, effect.operation, **params)
        names = ("params", "target", "intent_digest", "request", "body", "describe", "stake")
        revision = approval.revision + 1
        changed = {name: built[name] for name in names} | {
            "revision": revision,
            "state": EffectState.AWAITING_APPROVAL,
        }
        row = {**built, "id": effect.pk, "sent_key": effect.sent_key, "revision": revision}
        prior = [EffectState.AWAITING_APPROVAL, EffectState.READY]
        return [
            record.move("effect", effect.pk, prior, changed, bump=True),
            *self.ask(
                row,
                approval.run_id,
                supersedes=Approval.objects.get(pk=approval.pk),
                revision=revision,
                editors=() if editor is None else (editor,),
            ),
            record.reckon(),
        ]

    def sending(self, effect: Effect, approval: Approval | None) -> list[Change]:
        """The changes of a sender's claim: request used up, effect in flight, attempt committed."""
        n = effect.attempts + 1
        attempt = {
            "id": record.new_id(),
            "workspace_id": self.here.pk,
            "run_id": effect.run_id,
            "effect_id": effect.pk,
            "n": n,
            "state": AttemptState.COMMITTED,
            "token": 1,
            "worker": uuid4(),
        }
        return [
            *([] if approval is None else approvals.consume(approval)),
            record.move("effect", effect.pk, [EffectState.READY], {"state": EffectState.IN_FLIGHT, "attempts": n}),
            record.new("attempt", attempt, {"committed_at": 0, "expires_at": 15}),
            record.reckon(),
        ]

    def unknown(self, operation: str = "cards.refund", **params: Any) -> Effect:
        """A refund that was sent and not answered; its attempt is lost, its review open."""
        run = self.run()
        if operation.endswith("refund"):
            params = {"amount": 8400, "currency": "EUR", **params}
        row = self.row(run, EffectState.READY, operation, **params)
        self.write(run, record.new("effect", row, {"requested_at": 0}))
        effect = Effect.objects.get(pk=row["id"])
        self.write(run, *self.sending(effect, None), kind=EventKind.EFFECT_SENT)
        attempt = effect.attempt_set.get()
        self.write(
            run,
            record.move("attempt", attempt.pk, [AttemptState.COMMITTED], {"state": "lost"}, times={"ended_at": 0}),
            record.move(
                "effect",
                effect.pk,
                [EffectState.IN_FLIGHT],
                {"state": EffectState.UNKNOWN},
                times={"unknown_since": 0},
            ),
            open_review(
                ReviewKind.OUTCOME_UNKNOWN,
                effect.pk,
                workspace=self.here.pk,
                run=run,
                effect=effect.pk,
                high=True,
                due_in=1200,
            ),
            record.reckon(),
            kind=EventKind.EFFECT_UNKNOWN,
        )
        return Effect.objects.get(pk=effect.pk)

    def evidence(self, effect: Effect, claim: str, strength: str = "agrees", **row: Any) -> UUID:
        """A check's answer, received now; the effect's version rises."""
        id = record.new_id()
        given = {
            "id": id,
            "workspace_id": self.here.pk,
            "run_id": effect.run_id,
            "effect_id": effect.pk,
            "kind": "readback",
            "strength": strength,
            "claim": claim,
            "digest": "d",
            **row,
        }
        self.write(
            effect.run_id,
            record.new("evidence", given, {"observed_at": 0, "received_at": 0}),
            record.move("effect", effect.pk, None, {}, bump=True),
            kind=EventKind.EVIDENCE_RECEIVED,
            **told_of(effect),
        )
        assert Evidence.objects.filter(pk=id).exists()
        return id


def act(route: str = "test", **body: Any) -> Act:
    """A new action id over ``body``."""
    return Act.over(uuid4(), route, body)


def later(**length: float) -> None:
    """Move the record's clock."""
    clock.shift(timedelta(**length))


def stage() -> Stage:
    """People, groups and dependencies of two workspaces."""
    here, there = (Workspace.objects.create(slug=s, name=s, environment="SANDBOX") for s in ("acme-pay", "other-pay"))
    capacity = Capacity.objects.create(name="payments", max_in_flight=50)
    for workspace in (here, there):
        for name in ("payments", "cards-eu", "mail", "notices"):
            Dependency.objects.create(
                workspace=workspace,
                name=name,
                base_url=f"http://127.0.0.1:1/{name}",
                credential=f"{name}-live",
                capacity=capacity,
            )
    approvers = Group.objects.create(workspace=here, slug="payments-approvers", name="Payments approvers")
    Group.objects.create(workspace=here, slug="payments-oncall", name="Payments on-call")

    def person(name: str, workspace: Workspace, *roles: str) -> Person:
        made = Person.objects.create_user(f"{name.lower().replace(' ', '-')}@{workspace.slug}.example", name)
        access.grant(made, workspace, roles)
        return made

    s = Stage(
        here,
        there,
        person("Oncall A", here, "on-call"),
        person("Oncall G", here, "on-call"),
        person("Approver B", here, "approver"),
        person("Approver C", here, "approver"),
        person("Approver F", here, "approver"),
        person("Auditor D", here, "auditor"),
        person("Outsider E", there, "on-call", "approver"),
        approvers,
    )
    approvers.members.add(s.approver_b, s.approver_c, s.approver_f)
    Group.objects.create(workspace=there, slug="payments-approvers", name="x").members.add(s.outsider_e)
    intents._dependencies.clear()
    intents._groups.clear()
    return s
