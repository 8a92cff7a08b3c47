"""The console as a Django app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ConsoleConfig(AppConfig):
    name = "console"
    verbose_name = _("Console")

    def ready(self) -> None:
        """Register the checks, the doorbell and the hot tier, and make our Celery app the one that tasks find."""
        from django.conf import settings

        from console import celery, checks, comings, doorbell, hot
        from runs.checkpoints import tiers

        celery.app.set_default()
        checks.register_all()
        doorbell.connect()
        comings.connect()
        tiers.hot.register(hot.ValkeyStore(settings.RECOURSE_HOT_URL))
