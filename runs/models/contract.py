"""What authors declared, version by version: the declarative part of each contract, by digest."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from runs.models.base import new_id


class ContractVersion(models.Model):
    """One declared contract as it stood in some code of this installation; never changed, never deleted.

    An effect and a run name the digest that they began under, so that it can be read what was declared then. Two rows
    of one version say that somebody changed a version in place. Data of the installation, of no workspace.
    """

    class Kind(models.TextChoices):
        OPERATION = "operation"
        COMPUTATION = "computation"
        RUN_TYPE = "run_type"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=12, choices=Kind)
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    declared = models.JSONField()
    schema = models.JSONField(help_text="JSON Schema of the params, or of the data and the signals.")
    first_seen_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "name", "version", "digest"], name="contract_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version} {self.digest[:8]}"
