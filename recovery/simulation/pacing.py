"""The moments that the record gives out for calls, and each worker's own lanes to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recovery.simulation.world import World


class Own(dict[Any, Any]):
    """In the place of what a process keeps by itself: everybody's entries apart. ``who``: whose are meant now."""

    def __init__(self, who: Callable[[], str]) -> None:
        super().__init__()
        self._who = who

    def get(self, key: Any, default: Any = None) -> Any:
        """The entry of whoever is at work."""
        return super().get((self._who(), key), default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The same, made where there is none."""
        return super().setdefault((self._who(), key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((self._who(), key), value)


class Paces:
    """The moments of the seed's one capacity: never more in a sliding second than its rate (invariant 12)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._given: list[float] = []

    def given(self, answer: dict[str, Any]) -> None:
        """A commit was answered; with ``wait`` it gave a call its moment, in so many seconds."""
        wait, rate = answer.get("wait"), self._world.weather.rate
        if wait is None or rate is None:
            return
        at = self._world.moments.passed + float(wait)
        self._given.append(at)
        near = sum(at - 1 < one <= at for one in self._given)
        self._world.exercised[12] += 1
        if near > rate:
            self._world.violate(12, f"{near} calls in a second, {rate} are safe")
