from django.apps import AppConfig
from django.db.models.signals import post_migrate


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "The record"

    def ready(self) -> None:
        from runs.sql import install

        post_migrate.connect(install.after_migrate, sender=self, dispatch_uid="runs.sql.install")
