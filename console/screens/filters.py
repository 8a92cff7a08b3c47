"""The filters of the list of runs: in the address and, as ``state:waiting``, in its search box."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.pills import PILLS
from runs.states import RunState, WaitingOn

NAMES: Final[dict[str, str | Promise]] = {
    "state": gettext_lazy("State"),
    "type": gettext_lazy("Type"),
    "on": gettext_lazy("Waiting on"),
}
"""The filters, by their name in the address."""

_ALSO: Final = {"waiting on": "on", "waiting_on": "on"}
_NOT_FILTERS: Final = frozenset({"q", "cursor"})
_PAIR: Final = re.compile(r'(?<!\S)(waiting on|[A-Za-z_]+):("[^"]*"|\S+)')


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address asks for. ``unknown``: what was not understood; then nothing is listed."""

    state: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    q: str = ""
    unknown: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, query: QueryDict, types: Iterable[str]) -> Filters:
        """From the query of an address; ``types``: the run types that the workspace has."""
        given: dict[str, list[str]] = {name: [] for name in NAMES}
        asked = [(name, value) for name, values in query.lists() for value in values if name not in _NOT_FILTERS]
        q = " ".join(query.get("q", "").split())
        asked += [(name.lower(), value.strip('"')) for name, value in _PAIR.findall(q)]
        unknown: list[str] = []
        for name, value in asked:
            unknown += _take(given, _ALSO.get(name, name), value, list(types))
        kept = {name: tuple(dict.fromkeys(values)) for name, values in given.items()}
        return cls(**kept, q=_PAIR.sub("", q).strip().strip('"'), unknown=tuple(unknown))

    @property
    def wanted(self) -> dict[str, Any]:
        """As ``queries.runs_page`` takes them."""
        return {"states": self.state, "types": self.type, "waiting_on": self.on, "q": self.q}

    @property
    def chosen(self) -> int:
        """How many filters are set."""
        return len(self.state) + len(self.type) + len(self.on) + bool(self.q)

    def query(self, **more: Any) -> str:
        """The same as a query string, with ``more`` on top."""
        whole = {"state": self.state, "type": self.type, "on": self.on, "q": self.q, **more}
        return urlencode({name: value for name, value in whole.items() if value}, doseq=True)

    def words(self) -> str:
        """The same in words, for an empty list."""
        said = [state_words(value) for value in self.state] + list(self.type)
        said += [waiting_words(value) for value in self.on] + ([self.q] if self.q else [])
        return ", ".join(said)


def _take(given: dict[str, list[str]], name: str, value: str, types: list[str]) -> Iterator[str]:
    """Take one filter, or say why not."""
    if name not in given:
        near = get_close_matches(name, [*NAMES, *_ALSO], n=1, cutoff=0.5)
        said = _("No filter called {name}.").format(name=name)
        yield f"{said} {_did_you_mean(_ALSO.get(near[0], near[0]))}" if near else said
        return
    known = {"state": RunState.values, "on": WaitingOn.values, "type": types}[name]
    if value in known:
        given[name].append(value)
        return
    if not value:
        return
    near = get_close_matches(value, known, n=1, cutoff=0.5)
    said = _("No {filter} called {value}.").format(filter=str(NAMES[name]).lower(), value=value)
    yield f"{said} {_did_you_mean(near[0])}" if near else said


def _did_you_mean(name: str) -> str:
    return _("Did you mean {name}?").format(name=name)


def state_words(state: str) -> str:
    """A run's state as a filter names it."""
    return _("Waiting") if state == RunState.WAITING else str(PILLS["run"][state].text())


def waiting_words(on: str) -> str:
    """What a run waits on as a filter names it: "outcome unknown"."""
    said = str(PILLS["waiting"][on].text())
    return said.partition(": ")[2] or said
