"""The demonstration: two run types against the sandbox's four dependencies."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DemoConfig(AppConfig):
    """Holds ``contracts.py`` and nothing else."""

    name = "demo"
    verbose_name = _("Demonstration")
    default_auto_field = "django.db.models.BigAutoField"
