"""What came of many seeds, as one object and as words. Needs no settings: whoever starts the players reads it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from recovery.simulation.seeds import Result

NUMBERS: Final = tuple(range(1, 17))
"""The invariants, as the report names them."""


def line(result: Result, *, trace: bool) -> dict[str, Any]:
    """One seed as JSON values."""
    return {
        "seed": result.seed,
        "moves": result.moves,
        "runs": result.runs,
        "ended": result.ended,
        "effects": result.effects,
        "hit": result.hit,
        "violations": result.violations,
        "exercised": {str(number): n for number, n in sorted(result.exercised.items())},
        "kinds": dict(sorted(result.kinds.items())),
        "ms": round(result.seconds * 1000, 1),
        **({"trace": result.trace} if trace else {}),
    }


@dataclass
class Report:
    """The sum of the lines. ``seconds``: from the first seed's start to the last one's end, by the wall."""

    seeds: int = 0
    moves: int = 0
    runs: int = 0
    ended: int = 0
    effects: int = 0
    hit: int = 0
    ms: float = 0.0
    seconds: float = 0.0
    violations: list[dict[str, Any]] = field(default_factory=list)
    exercised: Counter[int] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, told: dict[str, Any]) -> None:
        """One more seed's line."""
        self.seeds += 1
        for name in ("moves", "runs", "ended", "effects", "hit", "ms"):
            setattr(self, name, getattr(self, name) + told[name])
        self.violations += told["violations"]
        self.exercised.update({int(number): n for number, n in told["exercised"].items()})
        self.kinds.update(told["kinds"])

    def so_far(self) -> str:
        """A few words on the way."""
        return f"{self.moves} moves, {self.effects} effects, {self.hit} hit, {len(self.violations)} violations"

    def as_json(self) -> dict[str, Any]:
        """Everything, with the shares that the figures ask for."""
        broken = {one["seed"] for one in self.violations}
        return {
            "seeds": self.seeds,
            "moves": self.moves,
            "moves_per_seed": round(self.moves / max(self.seeds, 1), 1),
            "runs": self.runs,
            "runs_ended": self.ended,
            "effects": self.effects,
            "effects_hit": self.hit,
            "hit_share": round(self.hit / max(self.effects, 1), 3),
            "liveness": self.seeds - len(broken),
            "violations": sorted(self.violations, key=lambda one: (one["seed"], str(one["invariant"]))),
            "exercised": {str(number): self.exercised[number] for number in NUMBERS},
            "not_exercised": [number for number in NUMBERS if not self.exercised[number]],
            "kinds": dict(sorted(self.kinds.items())),
            "seconds": round(self.seconds, 1),
            "ms_per_move": round(self.ms / max(self.moves, 1), 2),
        }

    def words(self) -> str:
        """The same for people."""
        told = self.as_json()
        lines = [
            f"{told['seeds']} seeds, {told['moves']} moves ({told['moves_per_seed']} a seed), {told['runs']} runs,"
            f" {told['runs_ended']} of them ended",
            f"{told['effects']} effects, {told['effects_hit']} hit by a fault ({told['hit_share']:.0%})",
            "checked: " + ", ".join(f"{number}: {n}" for number, n in told["exercised"].items()),
        ]
        if told["not_exercised"]:
            lines.append(f"not exercised: {', '.join(map(str, told['not_exercised']))}")
        lines += [f"seed {v['seed']}, move {v['move']}: {v['invariant']}: {v['what']}" for v in told["violations"]]
        lines.append(
            f"{len(told['violations'])} violations; {told['seconds']} s, {told['ms_per_move']} ms a move and process"
        )
        return "\n".join(lines)
