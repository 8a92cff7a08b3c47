"""`manage.py token`: a token for a program, said once. It acts for a person and never signs or decides."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from console.api.auth import LONGEST_DAYS, SCOPES, new_secret
from runs import access, clock, record
from runs.models import ApiToken, Person, Workspace
from runs.states import EventKind


class Command(BaseCommand):
    """Prints the token on stdout and nothing else there, for scripts to keep; only its digest is stored."""

    help = "Make an API token of a person for one workspace."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--person", required=True, metavar="EMAIL", help="whose authority it carries")
        parser.add_argument("--workspace", required=True, metavar="SLUG")
        parser.add_argument("--scopes", required=True, nargs="+", metavar="SCOPE", help=", ".join(SCOPES))
        parser.add_argument("--days", type=int, default=30, help=f"until it ends, 1 to {LONGEST_DAYS}; 30 unless given")
        parser.add_argument("--label", default="", help="what it is for")

    def handle(self, *args: Any, **options: Any) -> None:
        scopes = sorted({part for text in options["scopes"] for part in text.split(",") if part})
        unknown = [scope for scope in scopes if scope not in SCOPES]
        if unknown or not scopes:
            raise CommandError(f"No scope {', '.join(unknown) or 'was given'}. Known: {', '.join(SCOPES)}.")
        if not 1 <= options["days"] <= LONGEST_DAYS:
            raise CommandError(f"--days takes 1 to {LONGEST_DAYS}.")
        person = Person.objects.filter(email=options["person"].lower(), is_active=True).first()
        if person is None:
            raise CommandError(f"Nobody active has the address {options['person']}.")
        workspace = access.workspaces_for(person).filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"{person.name} sees no workspace {options['workspace']}.")
        self._require(person, workspace, scopes)
        secret = self._make(
            person, workspace, scopes, options["days"], options["label"] or f"{person.name}, by command"
        )
        self.stdout.write(secret)
        self.stderr.write(
            f"A token of {person.name} in {workspace.slug} for {', '.join(scopes)}, {options['days']} days. "
            "It is not shown again."
        )

    def _require(self, person: Person, workspace: Workspace, scopes: list[str]) -> None:
        held = access.permissions(person)[workspace.pk]
        for scope in scopes:
            if SCOPES[scope] not in held:
                roles = ", ".join(access.roles_with(SCOPES[scope]))
                raise CommandError(f"{person.name} may not do what {scope} is for. These roles may: {roles}.")

    def _make(self, person: Person, workspace: Workspace, scopes: list[str], days: int, label: str) -> str:
        secret, digest = new_secret()
        with transaction.atomic():
            token = ApiToken.objects.create(
                workspace=workspace,
                person=person,
                label=label[:100],
                digest=digest,
                scopes=scopes,
                expires_at=clock.now() + timedelta(days=days),
            )
            data = {
                "token": str(token.pk),
                "person": str(person.pk),
                "by": person.name,
                "label": token.label,
                "scopes": scopes,
                "expires_at": token.expires_at.isoformat(),
            }
            record.note(workspace.pk, EventKind.TOKEN_MADE, actor=None, data=data)
        return secret
