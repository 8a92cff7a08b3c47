"""What must hold at the moment of a claim and at the moment the bytes leave (invariants 2, 8, 10, 12 and 14)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx
from django.db import connection

from recovery.contract import registry
from recovery.simulation.moments import BEGAN
from runs.models import Approval, Attempt, Call, Effect, Signature
from runs.states import ApprovalState, CallState, RunState, SignatureState

if TYPE_CHECKING:
    from recovery.simulation.world import World


class Sending:
    """Looks at each claim in the commit that makes it, and at each request as it leaves."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.left: Counter[UUID] = Counter()
        self.effects: dict[str, UUID] = {}

    @property
    def now(self) -> datetime:
        """The time of the seed, a hair behind the record's."""
        return BEGAN + timedelta(seconds=self.world.moments.passed)

    def leaves(self, attempt: UUID, key: str, body: bytes, host: str) -> UUID | None:
        """The bytes leave now. Returns the effect, if the record knows it."""
        world = self.world
        world.exercised[2] += 1
        row = Attempt.objects.select_related("effect", "effect__workspace").filter(pk=attempt).first()
        if row is None and not connection.in_atomic_block:
            asked = Call.objects.select_related("workspace").filter(pk=attempt).first()
            if asked is not None:
                self._asks(asked, body, host)
                return None
        if row is None or connection.in_atomic_block:
            world.violate(2, f"bytes under {key} left without a committed attempt")
            return None
        effect = row.effect
        self.effects[key] = effect.pk
        self.left[attempt] += 1
        if self.left[attempt] > 1:
            world.violate(10, f"attempt {world.label(attempt)} was sent {self.left[attempt]} times")
        if (effect.sent_key, effect.body.encode()) != (key, body):
            world.violate(2, f"what left under {key} is not what was committed")
        world.exercised[14] += 1
        if host != f"{effect.workspace.slug}.invalid":
            world.violate(14, f"{key} of {effect.workspace.slug} was sent to {host}")
        world.exercised[12] += 1
        if self.now >= effect.deadline:
            world.violate(12, f"{key} left after its deadline")
        if _signed(effect):
            approval = _request(effect)
            if approval is not None and approval.execute_by is not None and self.now >= approval.execute_by:
                world.violate(8, f"{key} left after the time of its signatures")
        return effect.pk

    def _asks(self, call: Call, body: bytes, host: str) -> None:
        """The bytes of a computation leave."""
        world = self.world
        self.left[call.pk] += 1
        if call.state == CallState.READY or call.body.encode() != body:
            world.violate(2, f"{call.operation} was asked without a committed call")
        if self.left[call.pk] > 1:
            world.violate(10, f"{call.operation} was asked {self.left[call.pk]} times with one call")
        if host != f"{call.workspace.slug}.invalid":
            world.violate(14, f"{call.operation} of {call.workspace.slug} was asked of {host}")

    def claimed(self, attempt: UUID) -> None:
        """An attempt was committed: what it rests on must hold in this very commit (invariants 8 and 12)."""
        world = self.world
        row = Attempt.objects.select_related("effect", "effect__dependency", "run").filter(pk=attempt).first()
        if row is None:
            return
        if row.effect.dependency.held_at is not None:
            world.violate(12, f"{row.effect.sent_key} was claimed while {row.effect.dependency.name} was held")
        if row.run.state in (RunState.PAUSED, RunState.QUARANTINED):
            world.violate(13, f"{row.effect.sent_key} was claimed while its run was {row.run.state}")
        if not _signed(row.effect):
            return
        world.exercised[8] += 1
        effect, approval = row.effect, _request(row.effect)
        if approval is None:
            return world.violate(8, f"{effect.sent_key} was claimed without a request for signatures")
        if approval.state != ApprovalState.CONSUMED:
            world.violate(8, f"{effect.sent_key} was claimed on a request that is {approval.state}, not used up")
        fields = approval.fields
        bound = (fields["url"], fields["method"], fields["key"], fields["body"])
        sent = (effect.request["url"], effect.request["method"], effect.sent_key, effect.body)
        if bound != sent or approval.body != effect.body:
            world.violate(8, f"{effect.sent_key} was claimed with other bytes than those signed")
        if approval.execute_by is None or approval.execute_by <= self.now:
            world.violate(8, f"{effect.sent_key} was claimed after the time of its signatures")
        barred = {str(row.run.started_by_id), str(approval.requester_id), *approval.editors}
        members = set(world.stage.signers.members.filter(is_active=True).values_list("pk", flat=True))
        members |= set(approval.group.members.filter(is_active=True).values_list("pk", flat=True))
        signed = Signature.objects.filter(approval=approval, state=SignatureState.SIGNED)
        good = {one for one in signed.values_list("person_id", flat=True) if one in members and str(one) not in barred}
        if len(good) < approval.needed:
            world.violate(8, f"{effect.sent_key} was claimed on {len(good)} good signatures of {approval.needed}")

    def request_of(self, payload: dict[str, Any], row: dict[str, Any]) -> httpx.Request:
        """The request of an attempt that is being committed, for the engine whose guard is out."""
        changes = [change for entry in payload["entries"] for change in entry["changes"]]
        made = [c["row"] for c in changes if c["t"] == "effect" and c.get("row", {}).get("id") == row["effect_id"]]
        effect = made[0] if made else Effect.objects.values().get(pk=row["effect_id"])
        headers = {
            "Idempotency-Key": effect["sent_key"],
            "Recourse-Attempt": str(row["id"]),
            "Recourse-Token": str(row["token"]),
        }
        told = effect["request"]
        return httpx.Request(told["method"], told["url"], headers=headers, content=effect["body"].encode())


def _signed(effect: Effect) -> bool:
    contract = registry.effect_contract(effect.operation, effect.contract_version)
    return contract.approval is not None and contract.load(effect.params).signatures() is not None


def _request(effect: Effect) -> Approval | None:
    return Approval.objects.select_related("group").filter(effect=effect, revision=effect.revision).first()
