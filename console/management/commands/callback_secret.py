"""`manage.py callback_secret`: a secret for the messages of one dependency, said once."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.urls import reverse

from recovery.traffic import callbacks
from runs import record
from runs.models import Dependency
from runs.states import EventKind


class Command(BaseCommand):
    """Prints the secret on stdout and nothing else there. The one before counts too, until ``--only-newest``."""

    help = "Make a signing secret (Standard Webhooks) for the callbacks of a dependency."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True, metavar="SLUG")
        parser.add_argument("--dependency", required=True, metavar="NAME")
        parser.add_argument("--only-newest", action="store_true", help="make none; the older ones stop counting")

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            found = Dependency.objects.select_for_update(no_key=True).filter(
                workspace__slug=options["workspace"], name=options["dependency"]
            )
            dependency = found.first()
            if dependency is None:
                raise CommandError(f"{options['workspace']} has no dependency {options['dependency']}.")
            kept = callbacks.secrets_of(dependency)
            made = "" if options["only_newest"] else callbacks.new_secret()
            now = ([made] if made else []) + kept[:1]
            Dependency.objects.filter(pk=dependency.pk).update(callback_secrets=callbacks.keep_secrets(dependency, now))
            facts = {"dependency": dependency.name, "callback_secrets": len(now)}
            record.note(dependency.workspace_id, EventKind.DEPENDENCY_CHANGED, actor=None, data=facts)
        address = f"{settings.RECOURSE_ADDRESS or ''}{reverse('api:callbacks', args=[dependency.pk])}"
        if made:
            self.stdout.write(made)
        self.stderr.write(f"{dependency.name} sends to {address}. {len(now)} secret(s) count now; none is shown again.")
