"""`manage.py rotate_keys`: seal everything anew by the first key. May be stopped and begun again."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.checkpoints import keys
from runs.checkpoints.rotation import rotate


class Command(BaseCommand):
    """Put the new key first in RECOURSE_SEAL_KEYS, restart, run this; then an older key that nothing needs may go."""

    help = (
        "Seal all checkpoints anew by the first key of RECOURSE_SEAL_KEYS. Safe to stop, to repeat, and while running."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--at-most", type=int, metavar="N", help="rows of this call; the next call goes on")

    def handle(self, *args: Any, **options: Any) -> None:
        told = rotate(at_most=options["at_most"])
        self.stdout.write(f"{told.done} sealed by {keys.current()!r} now.")
        if told.changed_meanwhile:
            self.stdout.write(f"{told.changed_meanwhile} changed at the same moment; run this again.")
        for name, n in told.left.items():
            self.stdout.write(f"{n} still need {name!r}; keep it." if name else f"{n} are still to be looked at.")
        if not told.left:
            self.stdout.write("Nothing needs an older key any more.")
        for line in told.unreadable:
            self.stderr.write(line)
        for name, n in told.missing.items():
            self.stderr.write(f"undecryptable: {n} need the key {name!r}, which is not in RECOURSE_SEAL_KEYS.")
        if told.missing or told.unreadable:
            raise CommandError("Some could not be opened. Nothing of them was changed.")
