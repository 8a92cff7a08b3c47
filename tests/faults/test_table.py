"""docs/faults.md and the tests speak of the same rows: none is forgotten, none is named that is not shown."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "faults.md").read_text()
ROWS = (
    {1, 2, *range(4, 13), 14, *range(16, 28), 29, 31, *range(33, 41), *range(42, 48), *range(49, 57), *range(58, 61)}
    | {63, 64, 65, 67, 68}
) - {13, 15}
"""Numbers of the matrix; the gaps are its own."""

NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def _table(title: str) -> list[list[str]]:
    part = TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_row_is_shown_or_called_later() -> None:
    rows = _table("Rows")
    assert [int(row[0]) for row in rows] == sorted(ROWS)
    for number, fault, true, state, test, missing in rows:
        assert fault and true and state in {"now", "partly", "later"}, number
        if state == "later":
            assert test == "later", number
        else:
            assert NAMED.findall(test), number
        assert bool(missing) is (state != "now"), number


def _functions(pattern: str, start: str) -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "tests" / "faults").glob(pattern):
        found |= set(re.findall(rf"^def ({start}\w+)", path.read_text(), re.M))
    return found


def test_every_test_of_a_row_stands_in_the_row() -> None:
    """A test is called after its rows, and their rows name it."""
    by_row = {int(row[0]): row[4] for row in _table("Rows")}
    tests = _functions("test_rows_*.py", "test_row_")
    assert len(tests) > 30
    for name in tests:
        numbers = [int(n) for n in re.findall(r"(?:row|and)_(\d\d)", name)]
        assert numbers and all(name in by_row[n] for n in numbers), name


def test_every_public_report_stands_in_the_table() -> None:
    named = {name for row in _table("Public reports") for _, name in NAMED.findall(row[2])}
    assert named == _functions("test_reports.py", "test_")
