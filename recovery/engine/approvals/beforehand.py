"""Signatures that were given with the original: whether its compensation may go without its own (R15)."""

from __future__ import annotations

from recovery.contract import registry
from recovery.contract.errors import ContractError
from recovery.contract.fields import Authorization
from recovery.engine.approvals.asking import current_epoch
from recovery.engine.approvals.quorum import rule_of, standing
from runs.models import Approval, Effect
from runs.states import ApprovalState


def signed_beforehand(original: Effect) -> bool:
    """Whether the signatures on ``original`` cover its compensation, and still hold.

    They do if its contract said so when they were given: the digest that was signed covers the contract's declared
    part, and with it the compensation's operation and authorization. Every signer must still be allowed to sign.
    """
    try:
        contract = registry.effect_contract(original.operation, original.contract_version)
    except ContractError:
        return False
    rule = contract.compensation
    if rule is None or rule.authorization is not Authorization.PRE_APPROVED:
        return False
    approval = (
        Approval.objects.filter(effect_id=original.pk, revision=original.revision, state=ApprovalState.CONSUMED)
        .select_related("group", "run")
        .first()
    )
    if approval is None or approval.epoch != current_epoch():
        return False
    if not approval.fields["policy"] == original.contract_digest == contract.digest:
        return False
    return len(rule_of(approval).good(standing(approval))) >= approval.needed
