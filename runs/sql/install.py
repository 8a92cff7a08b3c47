"""Puts the writer's function and the transition table into the database, made from the code.

Runs after each migration (``post_migrate``), so that function, table and ``runs/states.py`` never differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.apps import apps as all_apps
from django.db import connections, models

from runs import states

HERE = Path(__file__).parent

STATEFUL = {"effect", "attempt", "approval", "signature", "verdict", "review"}
VERSIONED = {"effect"}
OF_RUN = {"effect", "attempt", "approval", "verdict", "review", "signal"}
TABLES = {
    "effect": "Effect",
    "attempt": "Attempt",
    "evidence": "Evidence",
    "approval": "Approval",
    "signature": "Signature",
    "verdict": "Verdict",
    "review": "Review",
    "link": "EffectLink",
    "signal": "Signal",
}
NEVER_CHANGES = {"id", "workspace_id", "run_id", "effect_id", "approval_id"}

_GUARD = """v_source := r_{{thing}}.state;
                    IF v_change ? 'prior' AND NOT (v_change->'prior' ? v_source) THEN
                        RAISE EXCEPTION 'the {{thing}} is %', v_source USING ERRCODE = 'RC004', DETAIL =
                            jsonb_build_object('thing', '{{thing}}', 'id', r_{{thing}}.id, 'state', v_source)::text;
                    END IF;"""
_VERSION_GUARD = """
                    IF v_change ? 'version' AND (v_change->>'version')::int <> r_{{thing}}.version THEN
                        RAISE EXCEPTION 'version % is not current', v_change->>'version' USING ERRCODE = 'RC002',
                            DETAIL =
                            jsonb_build_object('thing', '{{thing}}', 'seen', (v_change->>'version')::int,
                                               'now', r_{{thing}}.version)::text;
                    END IF;"""
_SIGNAL_GUARD = """IF r_signal.consumed_at IS NOT NULL THEN
                        RAISE EXCEPTION 'the signal was consumed' USING ERRCODE = 'RC004';
                    END IF;"""
_ON_MOVE = """IF r_{{thing}}.state <> v_source THEN
                        PERFORM runs_must_be_legal('{{thing}}', v_source, r_{{thing}}.state);
                        v_moves := v_moves || jsonb_build_object('t', '{{thing}}', 'id', r_{{thing}}.id,
                                                                 'from', v_source, 'to', r_{{thing}}.state);{{extra}}
                    END IF;"""
_BUMP = """
                    IF r_{{thing}}.state <> v_source OR v_change->>'bump' = 'true' THEN
                        r_{{thing}}.version := o_{{thing}}.version + 1;
                    END IF;"""
_NEW_MOVE = """IF FOUND THEN
                        v_moves := v_moves || jsonb_build_object('t', '{{thing}}', 'id', r_{{thing}}.id,
                                                                 'from', '', 'to', r_{{thing}}.state);
                    END IF;"""
_PERMIT_NEW = """
                    SELECT dependency_id INTO v_dep FROM runs_effect WHERE id = r_attempt.effect_id;
                    v_deps := v_deps || v_dep; v_deltas := v_deltas || 1;"""
_PERMIT_BACK = """
                        IF v_source IN ('committed', 'claimed') AND r_attempt.state NOT IN ('committed', 'claimed') THEN
                            SELECT dependency_id INTO v_dep FROM runs_effect WHERE id = r_attempt.effect_id;
                            v_deps := v_deps || v_dep; v_deltas := v_deltas || -1;
                        END IF;"""


def _columns(model: type[models.Model]) -> list[str]:
    return [f.column for f in model._meta.concrete_fields if f.column]


def _branch(thing: str, model: type[models.Model]) -> str:
    stateful = thing in STATEFUL
    columns = [c for c in _columns(model) if c not in NEVER_CHANGES]
    on_new = "PERFORM runs_must_be_legal('{{thing}}', '', r_{{thing}}.state);" if stateful else ""
    guard = (_GUARD if stateful else "") + (_VERSION_GUARD if thing in VERSIONED else "")
    on_move = (_ON_MOVE if stateful else "") + (_BUMP if thing in VERSIONED else "")
    if thing == "attempt":
        on_new += _PERMIT_NEW
    if thing == "signal":
        guard = _SIGNAL_GUARD
    parts = {
        "on_new": on_new,
        # one open review per (kind, subject), one link per (run, effect): asking again changes nothing
        "conflict": "ON CONFLICT DO NOTHING" if thing in {"review", "link"} else "",
        "new_move": _NEW_MOVE if stateful else "",
        "of_run": " AND run_id = v_run_id" if thing in OF_RUN else "",
        "guard": guard,
        "on_move": on_move.replace("{{extra}}", _PERMIT_BACK if thing == "attempt" else ""),
        "table": model._meta.db_table,
        "columns": ", ".join(f'"{c}"' for c in columns),
        "values": ", ".join(f'r_{thing}."{c}"' for c in columns),
    }
    text = (HERE / "branch.sql").read_text()
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return text.replace("{{thing}}", thing)


def function_sql() -> str:
    """The whole text of ``commit.sql`` with a branch for each table and every column named."""
    found = {thing: all_apps.get_model("runs", name) for thing, name in TABLES.items()}
    run_columns = [c for c in _columns(all_apps.get_model("runs", "Run")) if c not in NEVER_CHANGES]
    text = (HERE / "commit.sql").read_text()
    declare = "\n    ".join(f"r_{t} {m._meta.db_table}; o_{t} {m._meta.db_table};" for t, m in found.items())
    text = text.replace("{{declare}}", declare)
    text = text.replace("{{branches}}", "".join(_branch(t, m) for t, m in found.items()).rstrip())
    still_open = ", ".join(f"'{state}'" for state in sorted(states.EFFECT_OPEN))
    text = text.replace("{{effect_open}}", still_open)
    blocking = ", ".join(f"'{state}'" for state in sorted(states.EFFECT_BLOCKS_END))
    text = text.replace("{{effect_blocks_end}}", blocking)
    text = text.replace("{{run_columns}}", ", ".join(f'"{c}"' for c in run_columns))
    return text.replace("{{run_values}}", ", ".join(f'v_run."{c}"' for c in run_columns))


def install(using: str = "default") -> None:
    """Create or replace the functions and make the transition table equal to ``states.TRANSITIONS``."""
    wanted = {(thing, a, b) for thing, pairs in states.TRANSITIONS.items() for a, b in pairs}
    with connections[using].cursor() as cursor:
        cursor.execute(function_sql(), None)
        cursor.execute("SELECT thing, source, target FROM runs_transition")
        have = set(cursor.fetchall())
        for row in sorted(have - wanted):
            cursor.execute(
                "DELETE FROM runs_transition WHERE thing = %s AND source = %s AND target = %s", row
            )
        for row in sorted(wanted - have):
            cursor.execute("INSERT INTO runs_transition (thing, source, target) VALUES (%s, %s, %s)", row)


def after_migrate(using: str = "default", plan: Any = None, **kwargs: Any) -> None:
    """``post_migrate`` receiver. Does nothing when the app was migrated back to before its first migration."""
    if "runs_transition" in connections[using].introspection.table_names():
        install(using)
