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

STATEFUL = {"effect", "attempt", "approval", "signature", "verdict", "review"} | {
    "callback",
    "call",
    "breaker",
    "drain",
    "restore",
    "plan",
    "drill",
}
VERSIONED = {"effect"}
OF_RUN = {"call", "effect", "attempt", "approval", "verdict", "review", "signal", "plan"}
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
    "breaker": "Capacity",
    "dependency": "Dependency",
    "drain": "Drain",
    "plan": "Plan",
    "drill": "Drill",
    "callback": "Callback",
    "call": "Call",
    "restore": "Restore",
    "recovered": "Recovered",
}
OWNED = "t.workspace_id = v_ws"
SHARED = "EXISTS (SELECT 1 FROM runs_dependency d WHERE d.workspace_id = v_ws AND d.capacity_id = t.id)"
"""Whose rows a commit may change: a capacity belongs to every workspace that uses it."""


SENDS = {"attempt", "call"}
"""Rows that are committed before bytes leave: while a restore holds their workspace none is."""
NEVER_CHANGES = {"id", "workspace_id", "run_id", "effect_id", "approval_id", "mends_id"}

_LEGAL_NEW = """WHERE EXISTS (SELECT 1 FROM runs_transition x
                                  WHERE x.thing = '{{thing}}' AND x.source = '' AND x.target = v_set->>'state')
                    """
_AFTER_NEW = """IF FOUND THEN
                        v_moves := v_moves || jsonb_build_object('t', '{{thing}}', 'id', v_set->'id',
                                                                 'from', '', 'to', v_set->'state');{{extra}}
                    ELSE
                        PERFORM runs_must_be_legal('{{thing}}', '', v_set->>'state');
                    END IF;"""
_GUARDS = """
                      AND (NOT v_change ? 'prior' OR v_change->'prior' ? t.state)
                      AND (NOT v_set ? 'state' OR v_set->>'state' = t.state OR EXISTS (
                           SELECT 1 FROM runs_transition x WHERE x.thing = '{{thing}}' AND x.source = t.state
                                                             AND x.target = v_set->>'state'))"""
_VERSION_GUARD = """
                      AND (NOT v_change ? 'version' OR (v_change->>'version')::int = t.version)"""
_SIGNAL_GUARD = """
                      AND t.consumed_at IS NULL"""
_RETURNING = """
                    RETURNING old.state, new.state INTO v_source, v_target"""
_AFTER = """IF v_source <> v_target THEN
                        v_moves := v_moves || jsonb_build_object('t', '{{thing}}', 'id', v_change->'id',
                                                                 'from', v_source, 'to', v_target);{{extra}}
                    END IF;"""
_BUMPED = "CASE WHEN r.state <> t.state OR v_change->>'bump' = 'true' THEN t.version + 1 ELSE t.version END"
_PERMIT_NEW = """
                        IF v_set->>'state' IN ('committed', 'claimed') THEN
                            SELECT dependency_id INTO v_dep FROM runs_effect WHERE id = (v_set->>'effect_id')::uuid;
                            v_deps := v_deps || v_dep; v_deltas := v_deltas || 1;
                            v_whats := v_whats || (v_set->>'id')::uuid;
                        END IF;"""
_MAY_SEND = """
                    IF v_set->>'state' = 'committed' AND runs_holds(v_ws) <> '' THEN
                        RAISE EXCEPTION 'nothing is sent: %', runs_holds(v_ws) USING ERRCODE = 'RC008',
                            DETAIL = jsonb_build_object('why', runs_holds(v_ws))::text;
                    END IF;"""
_PERMIT_BACK = """
                        IF v_source IN ('committed', 'claimed') AND v_target NOT IN ('committed', 'claimed') THEN
                            SELECT e.dependency_id INTO v_dep
                            FROM runs_attempt a JOIN runs_effect e ON e.id = a.effect_id
                            WHERE a.id = (v_change->>'id')::uuid;
                            v_deps := v_deps || v_dep; v_deltas := v_deltas || -1;
                            v_whats := v_whats || (v_change->>'id')::uuid;
                        END IF;"""

_CALL_NEW = """
                        IF v_set->>'state' = 'committed' THEN
                            v_deps := v_deps || (v_set->>'dependency_id')::uuid; v_deltas := v_deltas || 1;
                            v_whats := v_whats || (v_set->>'id')::uuid;
                        END IF;"""
_CALL_MOVED = """
                        IF v_source = 'committed' OR v_target = 'committed' THEN
                            SELECT dependency_id INTO v_dep FROM runs_call WHERE id = (v_change->>'id')::uuid;
                            v_deps := v_deps || v_dep;
                            v_deltas := v_deltas || CASE WHEN v_target = 'committed' THEN 1 ELSE -1 END;
                            v_whats := v_whats || (v_change->>'id')::uuid;
                        END IF;"""
_EXTRA_NEW = {"attempt": _PERMIT_NEW, "call": _CALL_NEW}
_EXTRA_MOVED = {"attempt": _PERMIT_BACK, "call": _CALL_MOVED}


def _columns(model: type[models.Model]) -> list[str]:
    return [f.column for f in model._meta.concrete_fields if f.column]


def _branch(thing: str, model: type[models.Model]) -> str:
    stateful = thing in STATEFUL
    columns = [c for c in _columns(model) if c not in NEVER_CHANGES]
    guards = "\n                      AND t.run_id = v_run_id" if thing in OF_RUN else ""
    if thing == "review":
        # Some are about no run; those are changed where no run is.
        guards = "\n                      AND t.run_id IS NOT DISTINCT FROM v_run_id"
    guards += (_GUARDS if stateful else "") + (_VERSION_GUARD if thing in VERSIONED else "")
    guards += _SIGNAL_GUARD if thing == "signal" else ""
    values = [_BUMPED if thing in VERSIONED and c == "version" else f'r."{c}"' for c in columns]
    parts = {
        "may_send": _MAY_SEND if thing in SENDS else "",
        "new_where": _LEGAL_NEW if stateful else "",
        # one open review per (kind, subject), one link per (run, effect), one find: asking again changes nothing
        "conflict": "ON CONFLICT DO NOTHING" if thing in {"review", "link", "recovered"} else "",
        "new_after": _AFTER_NEW.replace("{{extra}}", _EXTRA_NEW.get(thing, "")) if stateful else "",
        "guards": guards,
        "mine": SHARED if thing == "breaker" else OWNED,
        "returning": _RETURNING if stateful else "",
        "after": _AFTER.replace("{{extra}}", _EXTRA_MOVED.get(thing, "")) if stateful else "",
        "owner": "v_run_id" if thing in OF_RUN else "NULL::uuid",
        "table": model._meta.db_table,
        "columns": ", ".join(f'"{c}"' for c in columns),
        "values": ", ".join(values),
    }
    text = (HERE / "branch.sql").read_text()
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return text.replace("{{thing}}", thing)


def function_sql() -> str:
    """The whole text of ``capacity.sql`` and of ``commit.sql`` with a branch for each table and every column named."""
    found = {thing: all_apps.get_model("runs", name) for thing, name in TABLES.items()}
    run_columns = [c for c in _columns(all_apps.get_model("runs", "Run")) if c not in NEVER_CHANGES]
    text = (HERE / "commit.sql").read_text()
    text = text.replace("{{branches}}", "".join(_branch(t, m) for t, m in found.items()).rstrip())
    # What is only planned is waited for by nobody: its run asks for it when its turn comes.
    still_open = ", ".join(f"'{state}'" for state in sorted(states.EFFECT_OPEN - {states.EffectState.PLANNED}))
    text = text.replace("{{effect_open}}", still_open)
    blocking = ", ".join(f"'{state}'" for state in sorted(states.EFFECT_BLOCKS_END))
    text = text.replace("{{effect_blocks_end}}", blocking)
    may_leave = ", ".join(f"'{state}'" for state in sorted(states.RUN_ENDS_OPEN))
    text = text.replace("{{run_ends_open}}", may_leave)
    text = text.replace("{{run_columns}}", ", ".join(f'"{c}"' for c in run_columns))
    text = text.replace("{{run_values}}", ", ".join(f'r."{c}"' for c in run_columns))
    return text + (HERE / "capacity.sql").read_text()


def install(using: str = "default") -> None:
    """Create or replace the functions and make the transition table equal to ``states.TRANSITIONS``."""
    wanted = {(thing, a, b) for thing, pairs in states.TRANSITIONS.items() for a, b in pairs}
    with connections[using].cursor() as cursor:
        cursor.execute(function_sql(), None)
        cursor.execute("SELECT thing, source, target FROM runs_transition")
        have = set(cursor.fetchall())
        for row in sorted(have - wanted):
            cursor.execute("DELETE FROM runs_transition WHERE thing = %s AND source = %s AND target = %s", row)
        for row in sorted(wanted - have):
            cursor.execute("INSERT INTO runs_transition (thing, source, target) VALUES (%s, %s, %s)", row)


def after_migrate(using: str = "default", plan: Any = None, **kwargs: Any) -> None:
    """``post_migrate`` receiver. Does nothing when the app was migrated back to before its first migration."""
    if "runs_transition" in connections[using].introspection.table_names():
        install(using)
