"""Work for the chaos: orders and notices, started by Oncall A in acme-pay."""

from __future__ import annotations

import random
import uuid
from typing import Any
from uuid import UUID


def order(rng: random.Random, provider: str) -> tuple[str, dict[str, Any]]:
    """A small refund and its e-mail."""
    mark = f"{rng.getrandbits(48):012x}"
    data = {
        "order": f"C-{mark}",
        "charge": f"ch_{mark}",
        "amount": rng.randrange(100, 90_000),
        "currency": rng.choice(["EUR", "USD"]),
        "email": "customer@example.com",
        "provider": provider,
    }
    return "orders.cancel", data


def some(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Mostly refunds by keys, some without, some notices that can be neither repeated nor checked."""
    drawn = rng.random()
    if drawn < 0.75:
        return order(rng, "payments")
    if drawn < 0.87:
        return order(rng, "cards-eu")
    return "notices.send", {"to": f"desk-{rng.getrandbits(32):08x}@acme.example", "text": "Chaos"}


def accept(rng: random.Random) -> UUID:
    """Accept one run directly by the action."""
    from recovery.actions import runs as actions
    from runs.models import Person, Workspace
    from runs.record import Act

    type, data = some(rng)
    workspace = Workspace.objects.get(slug="acme-pay")
    person = Person.objects.get(email="oncall-a@acme.example")
    return actions.accept(workspace, type, data, actor=person, act=Act(uuid.uuid4(), "chaos")).run
