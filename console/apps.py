"""The console as a Django app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ConsoleConfig(AppConfig):
    name = "console"
    verbose_name = _("Console")

    def ready(self) -> None:
        """Register the checks and the doorbell, and make our Celery app the one that tasks find."""
        from console import celery, checks, comings, doorbell

        celery.app.set_default()
        checks.register_all()
        doorbell.connect()
        comings.connect()
