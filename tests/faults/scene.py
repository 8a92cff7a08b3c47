"""What a scene of the fault tests is, and what several of them begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from recovery.actions import runs as actions
from runs.record import Act
from tests.recovery.engine.world import World

if TYPE_CHECKING:
    from tests.faults.conftest import Workers

REFUNDED = ("refund:ch_1", "succeeded", 1)
TOLD = ("mail:order_cancelled:A-1", "succeeded", 1)

Ends = list[tuple[str, list[tuple[str, str, int]]]]
COMPLETED: Ends = [("completed", [REFUNDED, TOLD])]


def order(provider: str, amount: int = 8400) -> dict[str, Any]:
    return {
        "order": "A-1",
        "charge": "ch_1",
        "amount": amount,
        "currency": "EUR",
        "email": "a@b.example",
        "provider": provider,
    }


def accept(w: World, type: str, input: dict[str, Any]) -> UUID:
    act = Act(uuid4(), "runs", "digest")
    return actions.accept(w.s.here, type, input, actor=w.s.oncall_a, act=act).run


def plain(w: World) -> None:
    """One order that is cancelled without a signature."""
    accept(w, "orders.cancel", order("payments"))


def nothing(w: World) -> None:
    """Nothing to begin with, to do, or to look at."""


@dataclass(frozen=True)
class Scene:
    """``begin``: given also the workers where it is ``with_forks``. ``asked``: what the worker does, beside sweeping
    and working. ``meanwhile``: a deed at a point, the first time it comes there. ``end``: where everything comes to
    undisturbed; ``or_else``: also, where the deed was not done. ``asks``: neither key nor proof, so that whoever dies
    around the send leaves a person to ask. ``then``: what people do after the worker. ``also``: what else is true at
    the end.
    """

    name: str
    begin: Callable[..., object]
    end: Ends
    asked: dict[str, Any] = field(default_factory=lambda: {"what": "work"})
    meanwhile: dict[str, str] = field(default_factory=dict)
    or_else: Ends | None = None
    asks: bool = False
    with_forks: bool = False
    then: Callable[[World], object] = nothing
    also: Callable[[World], object] = nothing

    def play(self, w: World, forks: Workers) -> dict[str, Any]:
        """Begin. Returns what the worker is asked to do, with an act of its own."""
        more = self.begin(w, forks) if self.with_forks else self.begin(w)
        given = more if isinstance(more, dict) else {}
        return {"act": str(uuid4()), "meanwhile": self.meanwhile, **self.asked, **given}
