"""`manage.py accounts`: the accounts that this installation made, with their passwords."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from console.stack import secrets


class Command(BaseCommand):
    """Prints name, e-mail and password; they are random per installation and lie in `secrets/` (0600)."""

    help = "Show the accounts that were made at the first start, with their passwords."

    def handle(self, *args: Any, **options: Any) -> None:
        accounts = secrets.installed().accounts()
        if not accounts:
            raise CommandError("No accounts were made in this data folder yet; `make run` makes them.")
        names = self._names(list(accounts))
        width = max(len(names.get(email, "")) for email in accounts)
        for email, password in accounts.items():
            self.stdout.write(f"  {names.get(email, ''):<{width}}  {email:<30}  {password}")

    def _names(self, emails: list[str]) -> dict[str, str]:
        people = get_user_model()._default_manager.filter(email__in=emails)
        try:
            return dict(people.values_list("email", "name"))
        except OperationalError:
            self.stderr.write("The record cannot be reached, so only e-mail addresses are shown.")
            return {}
