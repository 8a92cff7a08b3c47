"""`manage.py notices`: where notices of a workspace go."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email
from django.db import transaction

from recovery.traffic.callbacks import new_secret
from recovery.upkeep import notify
from runs import clock, record
from runs.models import Channel, NoticeTarget, Workspace
from runs.states import EventKind, ReviewKind


class Command(BaseCommand):
    """Adds, lists and ends addresses. A webhook's signing secret is printed on stdout, once."""

    help = "Send notices about what needs a person to an address: --webhook URL or --email ADDRESS; --list; --end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True, metavar="SLUG")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--webhook", metavar="URL", help="https; signed (Standard Webhooks), Slack shows its text")
        what.add_argument("--email", metavar="ADDRESS")
        what.add_argument("--list", action="store_true")
        what.add_argument("--end", metavar="ADDRESS", help="no more to this one")
        parser.add_argument("--kinds", nargs="*", default=[], metavar="KIND", help=", ".join(ReviewKind.values))
        parser.add_argument("--language", default="en", choices=[code for code, _name in settings.LANGUAGES])

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"There is no workspace {options['workspace']}.")
        targets = NoticeTarget.objects.filter(workspace=workspace, ended_at=None)
        if options["list"]:
            for row in targets.order_by("id"):
                self.stdout.write(f"{row.channel} {row.address} ({', '.join(row.kinds) or 'everything'})")
            return
        if options["end"]:
            self._end(workspace, targets, options["end"])
            return
        unknown = sorted(set(options["kinds"]) - set(ReviewKind.values))
        if unknown:
            raise CommandError(f"No kind {', '.join(unknown)}. Known: {', '.join(ReviewKind.values)}.")
        self._add(workspace, targets, options)

    def _add(self, workspace: Workspace, targets: Any, options: dict[str, Any]) -> None:
        channel, address = (
            (Channel.WEBHOOK, _webhook(options["webhook"]))
            if options["webhook"]
            else (Channel.EMAIL, _email(options["email"]))
        )
        if targets.filter(channel=channel, address=address).exists():
            raise CommandError(f"{address} is told already. End it first to change it.")
        with transaction.atomic():
            row = NoticeTarget(
                workspace=workspace,
                channel=channel,
                address=address,
                kinds=sorted(options["kinds"]),
                language=options["language"],
                since=clock.now(),
            )
            secret = new_secret() if channel == Channel.WEBHOOK else ""
            row.secret = notify.seal_secret(row, secret) if secret else ""
            row.save()
            _noted(workspace, row, "added")
        if secret:
            self.stdout.write(secret)
        self.stderr.write(f"{address} is told from now on about {', '.join(row.kinds) or 'everything'}.")

    def _end(self, workspace: Workspace, targets: Any, address: str) -> None:
        with transaction.atomic():
            row = targets.filter(address=address).first()
            if row is None:
                raise CommandError(f"{address} is not told anything. See --list.")
            NoticeTarget.objects.filter(pk=row.pk).update(ended_at=clock.now())
            _noted(workspace, row, "ended")
        self.stderr.write(f"{address} is told no more.")


def _noted(workspace: Workspace, row: NoticeTarget, what: str) -> None:
    facts = {"target": str(row.pk), "channel": row.channel, "address": row.address, "kinds": row.kinds, "what": what}
    record.note(workspace.pk, EventKind.NOTICES_CHANGED, actor=None, data=facts)


def _webhook(url: str) -> str:
    parts = urlsplit(url)
    loopback = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
        raise CommandError(f"{url} is not https. What is told names people's money; it does not travel open.")
    if not parts.hostname or parts.username or parts.password or parts.fragment or len(url) > 500:
        raise CommandError(f"{url} is not an address that a message can be posted to.")
    return url


def _email(address: str) -> str:
    try:
        validate_email(address)
    except ValidationError as error:
        raise CommandError(f"{address} is not an e-mail address.") from error
    return address
