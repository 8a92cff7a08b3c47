"""``make chaos``: break the live stack on purpose, then judge by the sandbox's ledger and the record's chains.

``kills --times 50``: SIGKILL to workers between the send and the record. ``outage --seconds 10``: PostgreSQL away.
``storm --seconds 600 --seed 7``: PostgreSQL restarted every 5 to 40 s, a worker killed every 20 s, the broker flushed
each minute, two backends terminated a second, 300 idle connections at times, the downstream losing answers.
``drain --effects 2000 --rate 50``: the way out of an outage. ``flights --effects 64 --seconds 30``: long calls at once.
``restore --seconds 20``: an older backup put back under everything else that goes on.
Exit code 1 if anything is wrong, or if less than half of the runs completed.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.stack import running

APPS = {"RECOURSE_APPS": "tests.chaos"}
"""The chaos's own contracts, found as an author's are."""


def main() -> None:
    asked = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    asked.add_argument("what", choices=["kills", "outage", "storm", "drain", "flights", "restore"])
    asked.add_argument("--times", type=int, default=50, help="kills in mid-send")
    asked.add_argument("--seconds", type=float, default=10, help="an outage, a storm, a call or work goes on")
    asked.add_argument("--effects", type=int, default=2000, help="how many pile up, or are in flight")
    asked.add_argument("--rate", type=float, default=50, help="calls a second that are safe")
    asked.add_argument("--expire", type=int, default=50, help="of them with a deadline that passes")
    asked.add_argument("--no-restart", action="store_true", help="leave PostgreSQL alone in the middle of a drain")
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    with running("--no-demo", **APPS) as stack:
        os.environ.update({**stack.settings, **APPS})
        import django

        django.setup()
        from tests.chaos import drain, flights, kills, outage, restore, storm

        if options.what == "kills":
            verdict = kills.run(stack, times=options.times, seed=options.seed)
        elif options.what == "storm":
            verdict = storm.run(stack, seconds=options.seconds, seed=options.seed)
        elif options.what == "drain":
            verdict = drain.run(
                stack,
                effects=options.effects,
                rate=options.rate,
                expire=options.expire,
                restart=not options.no_restart,
            )
        elif options.what == "restore":
            verdict = restore.run(stack, seconds=options.seconds, seed=options.seed)
        elif options.what == "flights":
            verdict = flights.run(stack, effects=options.effects, seconds=options.seconds)
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
