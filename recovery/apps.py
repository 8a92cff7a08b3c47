"""The engine's app: finds the contracts of all installed apps when Django is ready."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RecoveryConfig(AppConfig):
    """Discovers every ``contracts.py`` and registers the checks that name what is wrong with them."""

    name = "recovery"
    verbose_name = _("Recovery engine")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from recovery import bells, failpoints
        from recovery.checks import register_checks
        from recovery.contract import registry
        from runs import doorbells

        failpoints.arm_from_environment()
        doorbells.register(bells.ring)
        registry.discover()
        register_checks()
