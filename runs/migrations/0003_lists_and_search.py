"""Indexes of the lists and of search. ``btree_gin`` lets one GIN index hold the workspace beside the references."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import BtreeGinExtension
from django.db import migrations, models
from django.db.models.functions import Cast, Right


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_history_is_kept")]

    operations = [
        BtreeGinExtension(),
        migrations.AddIndex(
            "review",
            models.Index(
                condition=models.Q(("state", "open")),
                fields=["effect"],
                name="review_open_effect",
            ),
        ),
        migrations.AddIndex(
            "run",
            models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["workspace", "waiting_on", "-id"],
                name="run_by_wait",
            ),
        ),
        migrations.AddIndex("run", GinIndex(fields=["workspace", "references"], name="run_references")),
        migrations.AddIndex(
            "run",
            models.Index(
                models.F("workspace"),
                Right(Cast("id", models.TextField()), 8),
                name="run_by_tail",
            ),
        ),
        migrations.AddIndex(
            "signature",
            models.Index(fields=["approval", "id"], name="signature_of_approval"),
        ),
    ]
