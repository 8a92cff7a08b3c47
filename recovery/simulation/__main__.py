"""One process of the simulation: plays its seeds in the database of its settings, and prints a line of JSON for each.

Started by ``manage.py simulate``, which makes the throw-away database. It refuses one that anybody uses.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

import django


def main(argv: list[str] | None = None) -> int:
    """Play the seeds. 0: played (whatever came of them); 2: this database is not to be thrown away."""
    parser = argparse.ArgumentParser(prog="python -m recovery.simulation")
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--break", dest="guard", default="")
    asked = parser.parse_args(argv)
    django.setup()
    from recovery.simulation.stage import InUse

    try:
        for line in _lines(asked):
            print(line, flush=True)
    except InUse as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _lines(asked: argparse.Namespace) -> Iterator[str]:
    from recovery.simulation import report, seeds
    from recovery.simulation.guards import Guards

    guards = Guards(asked.guard)
    with seeds.theatre(guards) as cast:
        for seed in range(asked.first, asked.first + asked.seeds, asked.step):
            yield json.dumps(report.line(seeds.play(seed, cast, guards), trace=asked.trace))


if __name__ == "__main__":
    sys.exit(main())
