"""Making a request for signatures: the fields it binds (R2), the row, its review, and replacing an earlier
one (R1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from recovery.contract import canonical
from recovery.contract.effects import EffectContract
from recovery.engine.approvals.quorum import rule_for
from recovery.engine.changes import open_review, reason
from runs import record
from runs.models import Approval, Dependency, Effect, Epoch, Group, Run
from runs.models.base import new_id
from runs.record import Change
from runs.states import ApprovalState, ReviewKind

OPEN = (ApprovalState.PENDING, ApprovalState.GRANTED, ApprovalState.UNSATISFIABLE)
"""States of a request that can still lead to a send or to a signature."""

REPLACEABLE = (*OPEN, ApprovalState.EXPIRED)
"""States of a request that a next revision replaces: also one that ran out, whose review is still open."""


def current_epoch() -> int:
    """The epoch of the record; an approval of an earlier one is void."""
    return Epoch.objects.order_by("-id").values_list("id", flat=True)[0]


def fields_of_effect(
    row: Mapping[str, Any], *, revision: int, precondition: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Everything that is signed (R2), from an effect's columns. One query, for the account's name."""
    account = Dependency.objects.values_list("name", flat=True).get(pk=row["dependency_id"])
    return canonical.approval_fields(
        tenant=row["workspace_id"],
        run=row["run_id"],
        effect=row["id"],
        operation=row["operation"],
        target=row["target"],
        params=row["params"],
        stake=row["stake"],
        account=account,
        credential=row["request"]["credential"],
        precondition=precondition or None,
        policy=row["contract_digest"],
        revision=revision,
        method=row["request"]["method"],
        url=row["request"]["url"],
        key=row["sent_key"],
        body=row["body"],
    )


def columns(effect: Effect) -> dict[str, Any]:
    """An effect as its columns."""
    return {field.attname: getattr(effect, field.attname) for field in Effect._meta.concrete_fields}


def bytes_differ(effect: Effect, approval: Approval) -> bool:
    """Whether what would be sent now is not what was signed."""
    fields = fields_of_effect(columns(effect), revision=effect.revision, precondition=approval.precondition)
    return canonical.approval_digest(fields) != approval.digest


def ask(
    effect_row: Mapping[str, Any],
    contract: EffectContract,
    *,
    run: Run | Mapping[str, Any],
    requester: UUID | None,
    editors: Sequence[UUID | str],
    revision: int,
    supersedes: Approval | None,
    group: Group,
    now: datetime,
    cause: Mapping[str, Any] | None = None,
    precondition: Mapping[str, Any] | None = None,
) -> list[Change]:
    """The changes that replace ``supersedes`` and ask ``group`` for the contract's signatures on
    ``revision``.

    ``editors``: people whose signal changed an earlier revision. ``cause``: facts on why the old one is
    replaced (``signal``, ``who``). ``precondition``: values read when asking. A rule that nobody can meet
    gives a request that is unsatisfiable from the start, with its review (R14).
    """
    rule = contract.approval
    assert rule is not None, f"{contract.operation} asks for no signatures"
    row = dict(effect_row)
    starter = run.started_by_id if isinstance(run, Run) else run["started_by_id"]
    workspace = UUID(str(row["workspace_id"]))
    edited = {str(one) for one in editors}
    if supersedes is not None:
        edited |= hands_in(supersedes)
    who = rule_for(
        workspace,
        group,
        rule.needed,
        started_by=_uuid(starter),
        requester=_uuid(requester),
        editors=edited,
    )
    can = who.how_many()
    fields = fields_of_effect(row, revision=revision, precondition=precondition)
    approve_by = min(now + rule.approve_within, _time(row["deadline"]))
    approval = Approval(
        id=new_id(),
        workspace_id=workspace,
        run_id=UUID(str(row["run_id"])),
        effect_id=UUID(str(row["id"])),
        revision=revision,
        digest=canonical.approval_digest(fields),
        fields=fields,
        body=row["body"],
        state=ApprovalState.PENDING if can >= rule.needed else ApprovalState.UNSATISFIABLE,
        needed=rule.needed,
        group=group,
        requester_id=_uuid(requester),
        editors=sorted(edited),
        precondition=dict(precondition or {}),
        epoch=current_epoch(),
        approve_by=approve_by,
        execute_within=int(rule.execute_within.total_seconds()),
    )
    given = {f.attname: getattr(approval, f.attname) for f in Approval._meta.concrete_fields}
    changes = [] if supersedes is None else supersede(supersedes, revision=revision, cause=cause)
    changes.append(record.new("approval", given, {"asked_at": 0}))
    high = bool(row["irreversible"])
    told = {"describe": row["describe"], "stake": row["stake"], "group": group.slug, "needed": rule.needed}
    if approval.state == ApprovalState.PENDING:
        why = reason("signatures_needed", revision=revision, **told)
    else:
        why = reason("no_quorum", revision=revision, eligible=can, **told)
    changes.append(review_of(approval, why, high=high or can < rule.needed, due_at=approve_by))
    return changes


def hands_in(approval: Approval) -> set[str]:
    """Ids of whoever asked for ``approval`` or edited it or a revision before: they had a hand in the next one (R4)."""
    return {*approval.editors, *([str(approval.requester_id)] if approval.requester_id else [])}


def review_of(
    approval: Approval,
    why: Mapping[str, Any],
    *,
    high: bool,
    due_at: datetime | None = None,
    due_in: timedelta | None = None,
) -> Change:
    """The review that puts a request before its group."""
    return open_review(
        ReviewKind.SIGNATURES_NEEDED,
        approval.pk,
        workspace=approval.workspace_id,
        run=approval.run_id,
        effect=approval.effect_id,
        approval=approval.pk,
        group=approval.group_id,
        high=high,
        why=why,
        due_at=due_at,
        due_in=None if due_in is None else due_in.total_seconds(),
    )


def supersede(old: Approval, *, revision: int, cause: Mapping[str, Any] | None = None) -> list[Change]:
    """The changes by which ``revision`` replaces ``old``; its signatures count for nothing any more (R1)."""
    why = reason("superseded", revision=revision, **dict(cause or {}))
    return [
        record.move(
            "approval",
            old.pk,
            REPLACEABLE,
            {"state": ApprovalState.SUPERSEDED, "reason": why},
            times={"ended_at": 0},
        ),
        record.close_reviews(old.pk),
    ]


def _uuid(value: Any) -> UUID | None:
    return None if value is None else UUID(str(value))


def _time(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
