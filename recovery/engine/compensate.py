"""Making a compensation plan over what happened in a run: which effect is mended by what, in which order. Pure.

A compensation is a new effect that leads to an acceptable state, never a rollback. The order is that of the contracts
(``after``); where they name none, later effects come before earlier ones. What cannot be mended stands in the plan
too, with the reason: whoever reads it sees what will stay before anything is begun.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from recovery.contract import EffectContract, canonical, registry
from recovery.contract.effects import EffectRequest
from recovery.contract.errors import ContractError, UnknownOperation
from recovery.contract.fields import Authorization, Compensation, OnCancel
from recovery.contract.mending import LeftOut, PlanItem, derived_key
from recovery.engine import intents
from runs.models import Effect
from runs.states import EffectState

HAPPENED: Final = (EffectState.SUCCEEDED, EffectState.PARTIAL)
"""States of an effect that a plan is about."""

LEFT_OUT: Final[dict[str, Any]] = {
    "no_compensation": _("Its contract names nothing that would mend it."),
    "irreversible": _("Cannot be reversed: {why}."),
    "not_chosen": _("Not asked for."),
    "not_allowed": _("Its contract does not allow it as things are."),
    "too_late": _("It happened at {at}; mending it had to begin within {within_s} s."),
    "nothing_to_mend": _("There is nothing to mend."),
    "cannot_be_asked": _("Its contract could not say how: {said}"),
    "order_cycle": _("The contracts want it after something that comes after it."),
    "being_mended": _("Another compensation of it has not ended."),
    "by_person": _("Left out by {who}: {reason}"),
}
"""Why an effect that happened is not mended by a plan."""


def compose(
    effects: Sequence[Effect],
    *,
    now: datetime,
    only: Collection[UUID] | None = None,
    busy: Collection[UUID] = (),
    kept: Mapping[UUID, LeftOut] | None = None,
    approved: Collection[UUID] = (),
) -> list[PlanItem]:
    """The items of a plan over ``effects`` of one run, in order; those that are left out come last.

    ``only``: what was asked for. ``busy``: effects that another compensation has not let go of. ``kept``: what a
    person left out. ``approved``: effects whose compensation was signed with them.
    """
    happened = sorted((e for e in effects if e.state in HAPPENED), key=_latest_first)
    operations = {e.pk: e.operation for e in happened}
    items: dict[UUID, PlanItem] = {}
    wants: dict[UUID, tuple[str, ...]] = {}
    for effect in happened:
        item, after = _item(effect, now, only, busy, (kept or {}).get(effect.pk), effect.pk in approved)
        items[effect.pk], wants[effect.pk] = item, after
    active = [id for id, item in items.items() if item.active]
    before = {id: [other for other in active if other != id and operations[other] in wants[id]] for id in active}
    order = _in_order(active, before)
    circular = [id for id in active if id not in order]
    for id in circular:
        items[id] = items[id].model_copy(update={"left_out": LeftOut(code="order_cycle")})
    done = [*order, *(id for id in items if id not in order)]
    return [
        items[id].model_copy(update={"n": n, "after": [o for o in before.get(id, []) if o in order and id in order]})
        for n, id in enumerate(done, 1)
    ]


def _latest_first(effect: Effect) -> tuple[float, int]:
    at = effect.settled_at or effect.requested_at
    return (-at.timestamp(), -effect.ordinal)


def _in_order(active: Sequence[UUID], before: Mapping[UUID, Sequence[UUID]]) -> list[UUID]:
    """``active`` with everything after what comes before it, else as given. What waits for itself is not in it."""
    order: list[UUID] = []
    left = list(active)
    while left:
        free = next((id for id in left if all(other in order for other in before[id])), None)
        if free is None:
            return order
        order.append(free)
        left.remove(free)
    return order


def _item(
    effect: Effect,
    now: datetime,
    only: Collection[UUID] | None,
    busy: Collection[UUID],
    kept: LeftOut | None,
    approved: bool,
) -> tuple[PlanItem, tuple[str, ...]]:
    """The item of ``effect``, and the operations that its contract wants mended first."""
    bare = PlanItem(
        n=0,
        effect=effect.pk,
        state=EffectState(effect.state),
        happened=effect.describe,
        irreversible=effect.irreversible,
    )

    def without(code: str, **facts: Any) -> tuple[PlanItem, tuple[str, ...]]:
        return bare.model_copy(update={"left_out": LeftOut(code=code, facts=facts)}), ()

    try:
        contract = registry.effect_contract(effect.operation, effect.contract_version)
    except UnknownOperation as error:
        return without("cannot_be_asked", said=str(error))
    rule = contract.compensation
    if rule is None:
        return without("irreversible", why=effect.irreversible) if effect.irreversible else without("no_compensation")
    if only is not None and effect.pk not in only:
        return without("not_chosen")
    if effect.pk in busy:
        return without("being_mended")
    at = effect.settled_at or effect.requested_at
    if rule.within is not None and now >= at + rule.within:
        return without("too_late", at=at.isoformat(), within_s=int(rule.within.total_seconds()))
    try:
        with intents.authors(effect.operation):
            asked = _asked(effect, contract, rule)
    except (ContractError, intents.ContractRaised) as error:
        return without("cannot_be_asked", said=str(error)[:500])
    if isinstance(asked, str):
        return without(asked)
    request, key = asked
    signed = approved and rule.authorization is Authorization.PRE_APPROVED
    needed = None if signed else request.signatures()
    item = bare.model_copy(
        update={
            "by": request.contract.operation,
            "version": request.contract.version,
            "params": request.data,
            "key": key,
            "says": request.sentence("en")[:300],
            "stake": request.stake.as_stake() if request.stake else None,
            "approved": signed,
            "signatures": 0 if needed is None else needed.needed,
            "verified_by": rule.verified_by,
            "preconditions": [intents.english(one.says) for one in rule.preconditions],
            "residual": _residual(rule, effect),
            "knew": version_in(contract, effect.result),
            "escalate_to": rule.escalate_to,
            "deadline_s": None if rule.deadline is None else int(rule.deadline.total_seconds()),
            "left_out": kept,
        }
    )
    return item, rule.after


def _asked(effect: Effect, contract: EffectContract, rule: Compensation) -> tuple[EffectRequest, str] | str:
    """The request that mends ``effect`` and its key, or the code of why there is none."""
    params, result = contract.load(effect.params).params, dict(effect.result or {})
    if rule.allowed is not None and not rule.allowed(params, result):
        return "not_allowed"
    wanted = rule.request(params, result)
    if wanted is None:
        return "nothing_to_mend"
    request = registry.effect_contract(rule.by).load(dict(wanted))
    key = derived_key(effect.pk) if rule.key is None else rule.key(params, result)
    return request, key


def _residual(rule: Compensation, effect: Effect) -> str:
    return intents.english(rule.residual).format(**effect.params) if rule.residual is not None else ""


def version_in(contract: EffectContract, result: Mapping[str, Any] | None) -> str | int | None:
    """The version of the authority's state in ``result``; None where the contract or the result names none."""
    if contract.authority is None or not result:
        return None
    found = result.get(contract.authority.version_field)
    return found if isinstance(found, str | int) else None


def demanded(effect: Effect) -> bool:
    """Whether a cancelled run must mend ``effect``, which happened, before it is cancelled."""
    try:
        contract = registry.effect_contract(effect.operation, effect.contract_version)
    except UnknownOperation:
        return False
    return contract.compensation is not None and contract.on_cancel is OnCancel.COMPENSATE


def plan_digest(plan: UUID, revision: int, items: Sequence[PlanItem]) -> str:
    """What a person starts: the items of this revision, in this order (SHA-256, hex)."""
    told = [item.model_dump(mode="json") for item in items]
    return canonical.digest({"plan": str(plan), "revision": revision, "items": told})


def stays(items: Sequence[PlanItem], mended: Collection[UUID]) -> list[dict[str, Any]]:
    """What is still there when ``mended`` are: what was left out or did not work, and what mending leaves behind."""
    left: list[dict[str, Any]] = []
    for item in items:
        told = {"effect": str(item.effect), "what": item.happened}
        if item.effect not in mended:
            left.append({**told, "code": item.left_out.code if item.left_out else "not_mended"})
        elif item.residual:
            left.append({"effect": str(item.effect), "what": item.residual, "code": "residual"})
    return left
