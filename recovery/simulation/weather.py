"""How rough a seed is: the chances of each fault, drawn once, and the dice that follow them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from recovery.failpoints import Failpoint
from recovery.simulation import network


@dataclass
class Outage:
    """What a provider does to the next ``left`` requests."""

    what: str
    left: int


class Weather:
    """Chances of a seed. ``calm``: nothing breaks any more."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.calm = False
        self.workers = rng.choice([2, 2, 3])
        self.at_once = rng.choice([1, 2, 50, 50])
        self.rate = rng.choice([None, None, None, 2.0, 8.0])
        self.moves = rng.randint(30, 54)
        self.send = rng.choice([0.5, 0.7, 0.9])
        self.read = rng.choice([0.2, 0.4, 0.6])
        self.stop = rng.choice([0.02, 0.06, 0.15])
        self.sleep = rng.choice([0.0, 0.01, 0.03])
        self.die = rng.choice([0.003, 0.01, 0.02])
        self.fail = rng.choice([0.0, 0.01, 0.02])
        self.breaks = rng.choice([0.0, 0.01, 0.03])
        self.outages: dict[str, Outage] = {}

    def wire(self, kind: str, provider: str) -> str:
        """What happens to a request: one of network.SENDING or READING, or ``ok``."""
        if self.calm:
            return "ok"
        outage = self.outages.get(provider) if kind == "send" else None
        if outage is not None:
            outage.left -= 1
            if not outage.left:
                del self.outages[provider]
            return outage.what
        if self._rng.random() >= (self.send if kind == "send" else self.read):
            return "ok"
        return self._rng.choice(network.SENDING if kind == "send" else network.READING)

    def point(self, name: str) -> str | Exception:
        """What happens to a call that passes a failpoint."""
        if self.calm:
            return "go"
        dice = self._rng.random()
        for chance, fate in ((self.die, "die"), (self.fail, "fail"), (self.sleep, "sleep"), (self.stop, "stop")):
            if dice < chance:
                return Failpoint(name) if fate == "fail" else fate
            dice -= chance
        return "go"

    def statement(self, payload: dict[str, Any]) -> str:
        """Whether the connection breaks at a commit: ``before``, ``after``, or an empty text."""
        del payload
        if self.calm or self._rng.random() >= self.breaks:
            return ""
        return self._rng.choice(["before", "after"])

    def outage(self) -> str:
        """A provider begins to do one thing to each of its next requests. Returns it in words."""
        name = self._rng.choice(["payments", "payments", "cards-eu", "mail", "notices"])
        self.outages[name] = Outage(self._rng.choice(network.SENDING), self._rng.randint(1, 4))
        return f"{name}: {self.outages[name].what} x{self.outages[name].left}"
