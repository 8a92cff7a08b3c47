"""What the other side says by itself: signed with the workspace's secret (Standard Webhooks), taken in as at the door.

The signature is made and verified by the wall's clock, as the library does; when it was sent is the seed's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from standardwebhooks import Webhook

from recovery.traffic import callbacks
from recovery.traffic.callbacks import Forged
from runs.models import Dependency

if TYPE_CHECKING:
    from recovery.simulation.network import Message
    from recovery.simulation.world import World


class Mail:
    """Delivers messages; a forged one bears the neighbour's signature."""

    def __init__(self, world: World) -> None:
        self._world = world

    def deliver(self, told: Message, *, forged: bool) -> str:
        """Bring ``told`` to the door of its workspace. Returns what became of it."""
        where = Dependency.objects.get(workspace__slug=told.slug, name="payments")
        secrets = self._world.stage.secrets
        secret = next(one for slug, one in secrets.items() if (slug != told.slug) == forged)
        at = datetime.now(tz=UTC)
        headers = {
            "webhook-id": told.id,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": Webhook(secret).sign(told.id, at, told.body.decode()),
        }
        try:
            callbacks.verify(where, headers, told.body)
        except Forged:
            if not forged:
                self._world.violate(14, f"{told.id} was genuine and refused")
            return "forged, refused"
        if forged:
            self._world.violate(14, f"{told.id} was signed by another workspace and taken in")
        return str(callbacks.receive(where, told.id, told.body, self._world.sending.now))
