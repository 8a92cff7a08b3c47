"""The hands of a drill on the embedded stack: failpoints of live workers, parts, the broker, the sandbox's dials."""

from __future__ import annotations

import os
from pathlib import Path

import redis
from django.conf import settings

from console.stack import control
from recovery import failpoints
from recovery.sandbox.client import SandboxClient


class NoStack(Exception):
    """Drills break parts of the stack that `make run` started; this process knows of none."""


class StackHands:
    """Fulfils ``recovery.drills.catalogue.Hands``. Raises NoStack where there is no embedded stack."""

    def __init__(self) -> None:
        folder, self.data = os.environ.get("RECOURSE_DRILLS", ""), os.environ.get("RECOURSE_DATA", "")
        if not folder or not self.data or not settings.RECOURSE_SANDBOX_URL:
            raise NoStack
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.sandbox = SandboxClient(settings.RECOURSE_SANDBOX_URL)

    def arm(self, point: str, action: str) -> None:
        failpoints.arm_drill(self.folder, point, action)

    def disarm(self, point: str) -> bool:
        return failpoints.disarm_drill(self.folder, point)

    def restart(self, part: str) -> None:
        control.restart(self.data, part)

    def flush_broker(self) -> None:
        with redis.Redis.from_url(settings.REDIS_URL) as broker:
            broker.flushall()

    def lose_replies(self, times: int) -> None:
        self.sandbox.dial("payments", reply="drop", times=times)

    def take_back(self) -> None:
        """Nothing stays armed, whatever became of the drill."""
        for file in self.folder.iterdir():
            file.unlink(missing_ok=True)
        self.sandbox.reset("payments")
