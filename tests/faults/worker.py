"""What a forked worker does: sweep, advance, dispatch, reconcile in one process, until nothing is due.

One failpoint may be armed, for its n-th hit. Hits are counted into a file, so that an undisturbed run tells
how often each point is passed.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import traceback
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connections

from recovery import bells, failpoints
from recovery.actions import runs as actions
from recovery.contract import registry
from runs import doorbells
from runs.models import Person, Workspace
from runs.record import Act
from tests.recovery.engine.driver import Driver


def run(asked: dict[str, Any]) -> None:
    """Do ``asked``: its database, the point to arm, and either work or an acceptance. Ends the process on a
    fault of its own with code 3, its traceback in the log.
    """
    logging.disable(logging.CRITICAL)
    connections["default"].settings_dict["NAME"] = asked["database"]
    connections.settings["default"]["NAME"] = asked["database"]
    doorbells._ringers.clear()
    if asked.get("contracts"):
        registry.discover()
        registry.register_module(importlib.import_module(asked["contracts"]), "tests")
    hits: Counter[str] = Counter()
    for point in failpoints.POINTS:
        failpoints.arm(point, _counted(point, hits, asked))
    try:
        if asked["what"] == "accept":
            accept(asked)
        else:
            driver = Driver()
            bells.publish = driver.publish
            driver.drive(jump=timedelta(minutes=1))
    except failpoints.Failpoint:
        os._exit(4)
    except Exception:
        Path(asked["log"]).write_text(traceback.format_exc())
        os._exit(3)
    Path(asked["log"]).write_text(json.dumps(hits))


def _counted(point: str, hits: Counter[str], asked: dict[str, Any]) -> Any:
    breaks = failpoints._action(point, asked["action"]) if asked.get("point") == point else None

    def hit() -> None:
        hits[point] += 1
        if breaks is not None and hits[point] == asked["nth"]:
            breaks()

    return hit


def accept(asked: dict[str, Any]) -> None:
    """Accept one run of the demonstration under the given act."""
    workspace = Workspace.objects.get(slug="acme-pay")
    person = Person.objects.get(email="oncall-a@acme-pay.example")
    act = Act(UUID(asked["act"]), "runs", "digest")
    actions.accept(workspace, asked["type"], asked["input"], actor=person, act=act)
