from pathlib import Path

from django.db import migrations

from runs import sql

HISTORY = (Path(sql.__file__).parent / "history.sql").read_text()

DROP = """
DROP TRIGGER run_only_forward ON runs_run;
DROP FUNCTION runs_run_only_forward();
DROP TRIGGER event_is_kept ON runs_event;
DROP TRIGGER event_is_not_truncated ON runs_event;
DROP TRIGGER evidence_is_kept ON runs_evidence;
DROP TRIGGER evidence_is_not_truncated ON runs_evidence;
DROP FUNCTION runs_history_is_kept();
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_the_record")]

    operations = [
        migrations.RunSQL(HISTORY, DROP),
        migrations.RunSQL(
            "INSERT INTO runs_clockshift (id, shift) VALUES (1, interval '0');"
            "INSERT INTO runs_epoch (id, system_identifier, timeline, began_at)"
            " SELECT 1, s.system_identifier::text, c.timeline_id, clock_timestamp()"
            " FROM pg_control_system() s, pg_control_checkpoint() c;",
            "DELETE FROM runs_clockshift; DELETE FROM runs_epoch;",
        ),
    ]
