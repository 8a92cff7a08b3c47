"""What drains and long flights share: an installation with the chaos's own contracts, and its load."""

from __future__ import annotations

import itertools
import uuid
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from recovery.sandbox.client import SandboxClient
from runs.record import Act

_numbers = itertools.count(1)


def accept(mark: str, *, long: bool = False, deadline: datetime | None = None) -> UUID:
    """Accept one run with one refund, by the action itself."""
    from recovery.actions import runs as actions
    from runs.models import Person, Workspace

    workspace = Workspace.objects.get(slug="acme-pay")
    person = Person.objects.get(email="oncall-a@acme.example")
    data = {"charge": f"ch_{mark}_{next(_numbers)}", "long": long}
    act = Act(uuid.uuid4(), "chaos")
    return actions.accept(workspace, "chaos.once", data, actor=person, act=act, deadline=deadline).run


def act() -> dict[str, Any]:
    """Who presses, and the id of the press."""
    from runs.models import Person

    return {"actor": Person.objects.get(email="oncall-a@acme.example"), "act": Act(uuid.uuid4(), "chaos")}


def most_in_a_second(sandbox: SandboxClient, provider: str, since: datetime | None = None) -> tuple[int, int]:
    """(most requests in any sliding second, requests), by the sandbox's clock."""
    times = sorted(
        datetime.fromisoformat(line["received_at"]) for line in sandbox.requests() if line["provider"] == provider
    )
    if since is not None:
        times = [at for at in times if at >= since]
    most, first = 0, 0
    for n, at in enumerate(times):
        while at - times[first] >= timedelta(seconds=1):
            first += 1
        most = max(most, n - first + 1)
    return most, len(times)


def percentile(values: list[float], share: float) -> float:
    """The value below which ``share`` of ``values`` lie."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else float("nan")
