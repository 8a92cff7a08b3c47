"""``make chaos``: break the live stack on purpose, then judge by the sandbox's ledger and the record's chains.

``kills --times 50``: SIGKILL to workers between the send and the record. ``outage --seconds 10``: PostgreSQL away.
Exit code 1 if anything is wrong, or if less than half of the runs completed.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.stack import running


def main() -> None:
    asked = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    asked.add_argument("what", choices=["kills", "outage"])
    asked.add_argument("--times", type=int, default=50, help="kills in mid-send")
    asked.add_argument("--seconds", type=float, default=10, help="how long PostgreSQL is away")
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    with running("--no-demo") as stack:
        os.environ.update(stack.settings)
        import django

        django.setup()
        from tests.chaos import kills, outage

        if options.what == "kills":
            verdict = kills.run(stack, times=options.times, seed=options.seed)
        else:
            verdict = outage.run(stack, seconds=options.seconds, seed=options.seed)
    for name, count in verdict.counts.items():
        print(f"{count:6d} {name}")
    for line in verdict.wrong:
        print(f"WRONG: {line}")
    enough = verdict.counts["completed"] * 2 >= verdict.counts["accepted"] > 0
    print("Everything holds." if enough and not verdict.wrong else "This does not hold.")
    sys.exit(0 if enough and not verdict.wrong else 1)


if __name__ == "__main__":
    main()
