"""What a forked worker does: sweep, advance, dispatch, reconcile in one process, until nothing is due; or one thing
that a person does.

One failpoint may be armed, for its n-th hit. Hits are counted into a file, so that an undisturbed run tells how often
each point is passed.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, close_old_connections, connections

from recovery import bells, failpoints
from runs import doorbells
from tests.faults import deeds
from tests.faults.deeds import DEEDS
from tests.recovery.engine.driver import Driver
from tests.recovery.engine.registered import registered

FAILED = 4
"""Exit code of a process whose one thing failed by what was armed."""


BROKEN = (failpoints.Failpoint, failpoints.AnswerLost, TimeoutError)
"""What an armed point raises."""

AWAY = (OperationalError, InterfaceError, InternalError)
"""What a connection raises that was cut, or whose transaction PostgreSQL ended because it stood still."""


class Pool(Driver):
    """A pool of workers lives on when one of its tasks fails, as Celery's does."""

    def do(self, task: Callable[..., object], *ids: Any) -> None:
        try:
            super().do(task, *ids)
        except (*BROKEN, *AWAY):
            close_old_connections()


def run(asked: dict[str, Any]) -> None:
    """Do ``asked``: its database, the point to arm, what to do. Ends the process on a fault of its own with code 3,
    its traceback in the log.
    """
    logging.disable(logging.CRITICAL)
    connections["default"].settings_dict["NAME"] = asked["database"]
    connections.settings["default"]["NAME"] = asked["database"]
    # A process that is stopped in a transaction holds its locks for as long as PostgreSQL lets it.
    connections["default"].settings_dict["OPTIONS"]["options"] += " -c idle_in_transaction_session_timeout=1s"
    if "outside" in asked:
        settings.RECOURSE_OUTSIDE = Path(asked["outside"])
    hits: Counter[str] = Counter()
    for point in failpoints.POINTS:
        failpoints.arm(point, _counted(point, hits, asked))
    try:
        with registered():
            if "contracts" in asked:
                deeds.know(asked["contracts"])
            if "only" in asked:
                deeds.know_only(asked["only"])
            if asked["what"] in DEEDS:
                DEEDS[asked["what"]](asked)
            else:
                work()
    except BROKEN:
        Path(asked["log"]).write_text(json.dumps(hits))
        os._exit(FAILED)
    except Exception as error:
        if asked.get("action") == "stop" and isinstance(error, AWAY):
            os._exit(FAILED)  # stopped in a transaction, which PostgreSQL ended meanwhile
        Path(asked["log"]).write_text(traceback.format_exc())
        os._exit(3)
    Path(asked["log"]).write_text(json.dumps(hits))


def work() -> None:
    """Sweep and work until nothing is due within a minute. Whatever a sweep rings is done at once."""
    doorbells._ringers.clear()
    pool = Pool()
    bells.publish = pool.publish
    for _ in range(3):
        try:
            pool.drive(jump=timedelta(minutes=1))
        except (failpoints.Failpoint, *AWAY):
            close_old_connections()
            continue  # the sweep broke: its process begins the next pass
        return


def _counted(point: str, hits: Counter[str], asked: dict[str, Any]) -> Callable[[], None]:
    """Count; at the first hit do what the scene has for this point; break at the n-th if it is the one."""
    meanwhile = asked.get("meanwhile", {}).get(point)
    breaks = failpoints.action_of(point, asked["action"]) if asked.get("point") == point else None

    def hit() -> None:
        hits[point] += 1
        if breaks is not None and hits[point] == asked["nth"]:
            breaks()
        if meanwhile is not None and hits[point] == 1:
            DEEDS[meanwhile]({"what": meanwhile, "act": asked["act"]})

    return hit
