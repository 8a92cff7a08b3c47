"""`manage.py verify_checkpoints`: open what is kept, and say the share that opens and the time it took."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.checkpoints.verify import Verified, verify
from runs.models import Workspace


class Command(BaseCommand):
    """Reads PostgreSQL and the archive only. Ends with 1 when a checkpoint does not open."""

    help = "Open the checkpoints that are kept, from PostgreSQL and the archive; say the share and the time."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", metavar="SLUG", help="only of this workspace")
        parser.add_argument("--newest", action="store_true", help="only those that runs would go on from")
        parser.add_argument("--sample", type=int, metavar="N", help="N of them, at random; all unless given")
        parser.add_argument("--json", action="store_true", help="one JSON object on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = None
        if options["workspace"]:
            workspace = Workspace.objects.filter(slug=options["workspace"]).values_list("pk", flat=True).first()
            if workspace is None:
                raise CommandError(f"There is no workspace {options['workspace']}.")
        if options["sample"] is not None and options["sample"] < 1:
            raise CommandError("--sample takes 1 or more.")
        told = verify(workspace=workspace, newest=options["newest"], sample=options["sample"])
        if options["json"]:
            self.stdout.write(json.dumps(told.as_json()))
        else:
            self._say(told)
        if told.share < 1:
            raise CommandError(f"{told.looked - told.opened - told.from_future} of {told.looked} do not open.")

    def _say(self, told: Verified) -> None:
        self.stdout.write(
            f"{told.opened} of {told.looked} checkpoints opened ({told.share:.2%}) in {told.seconds:.2f} s."
        )
        if told.from_future:
            self.stdout.write(f"{told.from_future} were written by a newer version; whole, not opened.")
        for key, n in told.missing.items():
            self.stdout.write(f"undecryptable: {n} need the key {key!r}, which is not in RECOURSE_SEAL_KEYS.")
        for line in told.damaged:
            self.stdout.write(f"damaged: {line}")
        for line in told.away:
            self.stdout.write(f"archive away: {line}")
