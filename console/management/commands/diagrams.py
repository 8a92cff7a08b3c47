"""`manage.py diagrams`: the parts of the docs that are made from the code.

Each part stands between two marks in a file under ``docs/``. Text outside the marks is never touched.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import override

import recovery
from console import words
from console.api.problems import WORDS
from recovery.engine.reasons import REASONS
from runs.errors import RunsError
from runs.states import EFFECT_SETTLED, RUN_ENDED, START, TRANSITIONS

DOCS: Final = Path(__file__).resolve().parents[3] / "docs"
OURS: Final = ("runs.", "recovery.", "console.")
ENDS: Final[dict[str, frozenset[Any]]] = {"run": RUN_ENDED, "effect": EFFECT_SETTLED}


def begin(name: str) -> str:
    """The mark before a made part."""
    return f"<!-- {name}: made by `manage.py diagrams`; edit the code, not this -->"


def end(name: str) -> str:
    """The mark after it."""
    return f"<!-- end of {name} -->"


def state_diagram(thing: str) -> str:
    """The states and legal moves of ``thing`` as a Mermaid state diagram, in the order of their names."""
    lines = ["```mermaid", "stateDiagram-v2"]
    pairs = sorted(TRANSITIONS[thing])
    for source, target in pairs:
        lines.append(f"    {source or '[*]'} --> {target}")
    sources = {source for source, _ in pairs} - {START}
    ends = {str(state) for state in ENDS.get(thing, frozenset())}
    lines.extend(f"    {state} --> [*]" for state in sorted(ends | ({target for _, target in pairs} - sources)))
    return "\n".join([*lines, "```"])


def reason_table() -> str:
    """Each reason code of a decision: whose turn it is, what is waited for, what if nobody acts."""
    rows = ["| code | turn | waiting for, or how it ended | if nobody acts |", "| --- | --- | --- | --- |"]
    for code, reason in REASONS.items():
        ended = reason.turn == "nobody"
        first = reason.ends_when if ended else reason.waiting_for
        rows.append(f"| `{code}` | {reason.turn} | {first} | {reason.if_nobody_acts} |")
    return "\n".join(rows)


def refusals() -> dict[str, str]:
    """Each code with which something is refused, and its sentence or, without one, its meaning."""
    found = {code: " ".join(str(part) for part in pair if part) for code, pair in WORDS.items()}
    for _finder, name, _package in pkgutil.walk_packages(recovery.__path__, "recovery."):
        if not name.endswith("__main__"):
            importlib.import_module(name)
    for error in _below(RunsError):
        own = vars(error).get("code") if error.__module__.startswith(OURS) else None
        if isinstance(own, str) and own not in found:
            found[own] = (error.__doc__ or own).splitlines()[0].replace("``", "`")
    found.update({code: str(text) for code, text in words.REFUSALS.items()})
    return dict(sorted(found.items()))


def _below(error: type[RunsError]) -> Iterator[type[RunsError]]:
    for child in error.__subclasses__():
        yield child
        yield from _below(child)


def refusal_table() -> str:
    """The refusals as a table."""
    rows = ["| code | what is said |", "| --- | --- |"]
    return "\n".join([*rows, *(f"| `{code}` | {text} |" for code, text in refusals().items())])


MAIN: Final = ("run", "effect", "attempt", "approval", "signature", "verdict", "review")
"""What ``docs/states.md`` draws; the rest stands in ``docs/more-states.md``."""


def _drawn(things: Iterable[str]) -> dict[str, Callable[[], str]]:
    return {f"states of {thing}": partial(state_diagram, thing) for thing in things}


MADE: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "states.md": _drawn([thing for thing in TRANSITIONS if thing in MAIN]),
    "more-states.md": _drawn([thing for thing in TRANSITIONS if thing not in MAIN]),
    "reference.md": {"reason codes": reason_table, "refusal codes": refusal_table},
}
"""File, name of the part, how it is made."""


def redrawn(file: str, text: str) -> str:
    """``text`` with each part of ``file`` made anew, in English. Raises ValueError for a missing mark."""
    with override("en"):
        for name, make in MADE[file].items():
            before, opened, rest = text.partition(begin(name))
            _old, closed, after = rest.partition(end(name))
            if not opened or not closed:
                raise ValueError(f"docs/{file} has no part {name!r}: it needs both of its marks")
            text = f"{before}{opened}\n{make()}\n{closed}{after}"
    return text


class Command(BaseCommand):
    """Writes the made parts anew. ``--check`` writes nothing and fails if one is not current."""

    help = "Draw the state diagrams and the tables of codes in docs/ from the code."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail if a part is not current")

    def handle(self, *args: Any, **options: Any) -> None:
        for file in MADE:
            path = DOCS / file
            text = path.read_text()
            wanted = redrawn(file, text)
            if wanted == text:
                self.stdout.write(f"docs/{file} is current.")
            elif options["check"]:
                raise CommandError(f"docs/{file} is not current; `manage.py diagrams` writes it.")
            else:
                path.write_text(wanted)
                self.stdout.write(f"docs/{file} is written.")
