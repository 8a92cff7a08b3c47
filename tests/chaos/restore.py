"""An older backup of the record put back under the running workers and the running sandbox.

Work, a cold copy of PostgreSQL's folder, more work, the copy in the place of the record. Then: nothing is sent until
the other sides were read and two people let it; what had happened is known again; nothing happens twice; what a client
submits again is met by what was found.
"""

from __future__ import annotations

import random
import shutil
import signal
import time
import uuid
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection

from console.stack import control
from recovery.drills import judge as oracle
from recovery.sandbox.client import SandboxClient
from tests.chaos import load
from tests.stack import Stack

SLOW = 0.2
"""Seconds that the sandbox takes to answer: some effects are in flight at any moment."""


def run(stack: Stack, *, seconds: float, seed: int) -> oracle.Verdict:
    """Work ``seconds`` before the backup and ``seconds`` after it, restore it, and judge."""
    from runs.models import Recovered, Restore

    rng = random.Random(seed)
    sandbox = SandboxClient(stack.settings["RECOURSE_SANDBOX_URL"])
    for provider in ("payments", "cards-eu", "mail", "notices"):
        sandbox.dial(provider, reply="slow", delay=SLOW)
    before = _work(rng, seconds)
    folder, backup = stack.data / "postgres", stack.data / "backup"
    with control.held(stack.data, "postgres", signal.SIGINT):
        shutil.copytree(folder, backup, symlinks=True)
    _until("PostgreSQL answers", 60, _answers)
    at_backup = len(sandbox.requests())
    after = _work(rng, seconds)
    time.sleep(3)
    with control.held(stack.data, "postgres", signal.SIGINT):
        shutil.rmtree(folder)
        shutil.copytree(backup, folder, symlinks=True)
        time.sleep(2 + SLOW)  # what was on its way when the record went has arrived
        at_restore = len(sandbox.requests())
    print(f"{at_backup} requests at the backup, {at_restore} when it was put back", flush=True)
    restore = _until("a restore is noticed", 60, lambda: _first(Restore.objects.filter(workspace__slug="acme-pay")))
    noticed = time.monotonic()
    print(f"noticed ({restore.cause}); the record is of {restore.backup_at:%H:%M:%S}", flush=True)
    swept = _until("the sweep ends", 600, lambda: _first(Restore.objects.filter(pk=restore.pk, state="swept")))
    while_frozen = len(sandbox.requests()) - at_restore
    print(f"read through in {time.monotonic() - noticed:.0f} s: found {swept.found}, left {swept.left}", flush=True)
    _let(swept)
    again = _submit_again(after, rng)
    quiet = oracle.wait_until_settled([*before, *again], 300)
    verdict = oracle.judge([*before, *again], sandbox)
    print(f"everything had ended or asked a person {quiet:.0f} s after the release")
    if while_frozen:
        verdict.wrong.append(f"{while_frozen} requests were sent before two people let them")
    if at_restore <= at_backup:
        verdict.wrong.append("nothing happened between the backup and its restore: this showed nothing")
    verdict.counts["sent while frozen"] = while_frozen
    verdict.counts["effects found that the backup did not know"] = Recovered.objects.filter(restore=swept).count()
    verdict.counts["of these met by a run that asked again"] = Recovered.objects.exclude(met_by=None).count()
    verdict.counts["runs of after the backup, submitted again"] = len(again)
    return verdict


_asked: dict[UUID, tuple[str, dict[str, Any]]] = {}


def _work(rng: random.Random, seconds: float) -> list[UUID]:
    """Accept runs for ``seconds``, as many as the workers carry out meanwhile."""
    until, ids = time.monotonic() + seconds, []
    while time.monotonic() < until:
        type, data = load.some(rng)
        ids.append(_accept(type, data))
        time.sleep(rng.uniform(0.05, 0.3))
    return ids


def _accept(type: str, data: dict[str, Any]) -> UUID:
    from recovery.actions import runs as actions
    from runs.models import Person, Workspace
    from runs.record import Act

    workspace = Workspace.objects.get(slug="acme-pay")
    person = Person.objects.get(email="oncall-a@acme.example")
    run = actions.accept(workspace, type, data, actor=person, act=Act(uuid.uuid4(), "chaos")).run
    _asked[run] = (type, data)
    return run


def _submit_again(lost: list[UUID], rng: random.Random) -> list[UUID]:
    """What clients do who find their run gone. Notices have a key of their run: a new run is another notice."""
    orders = [_asked[run] for run in lost if _asked[run][0] != "notices.send"]
    rng.shuffle(orders)
    return [_accept(type, data) for type, data in orders]


def _let(restore: Any) -> None:
    from recovery.actions import restore as actions
    from runs.models import Person
    from runs.record import Act

    first = Person.objects.get(email="oncall-a@acme.example")
    second = Person.objects.get(email="approver-b@acme.example")
    actions.ask_release(restore.pk, actor=first, act=Act(uuid.uuid4(), "chaos"), reason="read through")
    actions.answer_release(restore.pk, actor=second, act=Act(uuid.uuid4(), "chaos"), confirm=True, reason="seen")


def _first(rows: Any) -> Any:
    try:
        return rows.first()
    except DatabaseError:
        connection.close()
        return None


def _answers() -> bool | None:
    from runs.models import Workspace

    return True if _first(Workspace.objects.all()) is not None else None


def _until(what: str, seconds: float, look: Callable[[], Any]) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found is not None:
            return found
        time.sleep(0.5)
    raise SystemExit(f"after {seconds:.0f} s it is still not so: {what}")
