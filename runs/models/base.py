"""What every model of the record shares."""

from __future__ import annotations

import uuid

import uuid_utils.compat
from django.db import models

make_id = uuid_utils.compat.uuid7
"""Where ids come from; only the simulation puts another source here, so that a seed gives the same ids again."""


def new_id() -> uuid.UUID:
    """A fresh UUIDv7 (RFC 9562): sorts by creation, so lists page by id."""
    return make_id()


def choices_check(field: str, enum: type[models.TextChoices], name: str) -> models.CheckConstraint:
    """A check constraint that admits only the values of ``enum`` in ``field``."""
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": [str(v) for v in enum.values]}), name=name)


class Row(models.Model):
    """A row of one workspace with a UUIDv7 key and the unique pair that SameWorkspace points to."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey("runs.Workspace", on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        abstract = True


class RunRow(Row):
    """A row that belongs to a run: its foreign key with the workspace proves the workspace, one check is enough."""

    workspace = models.ForeignKey(
        "runs.Workspace", on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )

    class Meta:
        abstract = True
