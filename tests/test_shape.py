"""The shape that no linter knows: one writer, one direction, small files, nothing of one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
APPS = ("runs", "recovery", "console", "demo")
SOURCES = sorted(
    path
    for app in APPS
    for path in (ROOT / app).rglob("*.py")
    if "migrations" not in path.parts and "__pycache__" not in path.parts
)
WRITTEN = {
    ".py",
    ".sql",
    ".html",
    ".css",
    ".js",
    ".md",
    ".toml",
    ".in",
    ".txt",
    ".yml",
    ".yaml",
    ".example",
    "",
}
"""Kinds of files that people write; locks, catalogues and pictures are made."""

SKIPPED = {
    ".git",
    ".venv",
    "var",
    "__pycache__",
    ".ruff_cache",
    ".mypy_cache",
    ".pytest_cache",
    "node_modules",
}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _files() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        inside = path.relative_to(ROOT).parts
        if path.is_file() and not SKIPPED & set(inside) and path.suffix in WRITTEN:
            yield path


# --- one writer

RECORD = {
    *(
        "Run",
        "Effect",
        "EffectLink",
        "Attempt",
        "Evidence",
        "Approval",
        "Signature",
        "Verdict",
        "Review",
        "Signal",
        "Restore",
        "Recovered",
        "Plan",
    ),
    *("Checkpoint", "Event", "Action", "Transition", "ContractVersion"),
}
"""Models whose rows only ``runs/record.py`` writes."""

WRITES = {
    *("create", "acreate", "update", "aupdate", "delete", "adelete", "bulk_create", "abulk_create"),
    *(
        "bulk_update",
        "abulk_update",
        "get_or_create",
        "aget_or_create",
        "update_or_create",
        "aupdate_or_create",
    ),
}
OWN_TABLES = {
    "runs/access.py": "grants permissions",
    "recovery/simulation/stage.py": "the cast of a throw-away database",
    "runs/checkpoints/tokens.py": "makes a workspace's key for sealed fields",
    "runs/models/workspace.py": "makes people",
    "console/screens/account.py": "a person's own language, zone and theme",
    "console/management/commands/demo_people.py": "setup",
    "console/management/commands/token.py": "setup",
    "console/management/commands/callback_secret.py": "setup",
    "console/management/commands/notices.py": "setup",
    "recovery/upkeep/notify.py": "what was told to whom",
}
"""Files that write rows which have no state, and what for; they too write no record model."""

RAW = re.compile(r"\b(INSERT\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE)\s+\"?runs_", re.I)
RAW_ALLOWED = {
    "recovery/engine/workers.py": "heartbeats",
    "runs/checkpoints/keeping.py": "where a checkpoint is kept and under which key, never what it says",
    "runs/epochs.py": "the epoch's row, which has no history of its own",
    "recovery/engine/declarations.py": "what authors declared",
    "recovery/upkeep/notify.py": "what was told to whom",
    "runs/clock.py": "the shift that only tests set",
    "runs/sql/install.py": "the table of legal moves",
}


def _root(node: ast.expr) -> str | None:
    """The name at the beginning of ``Name.a.b(...).c``."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _record_writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, what) of ORM writes to a record model: by its name, or by a variable that was made from it."""
    names = set(RECORD)
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) else None
        if value is not None and _root(value) in RECORD:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[union-attr]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.For) and _root(node.iter) in names and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in WRITES | {"save", "asave"} and _root(node.func.value) in names:
            yield node.lineno, ast.unparse(node.func)


def _plain_writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, what) of every ORM write that can be told by its looks, whatever the model."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        text = ast.unparse(node.func)
        saves = node.func.attr in {"save", "asave"} and not node.args
        if saves or (node.func.attr in WRITES and ".objects" in text):
            yield node.lineno, text


def test_only_the_record_writes_the_record() -> None:
    """Every change of state is one call of ``record.commit`` (invariant 9)."""
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        assert list(_record_writes(tree)) == [], _name(path)
        if _name(path) not in OWN_TABLES:
            assert list(_plain_writes(tree)) == [], _name(path)


def test_no_plain_sql_writes_the_record() -> None:
    for path in SOURCES:
        if _name(path) not in RAW_ALLOWED:
            assert RAW.findall(path.read_text()) == [], _name(path)


def test_one_place_calls_the_writers_function() -> None:
    calls = {_name(path): path.read_text().count("runs_commit") for path in SOURCES}
    assert {name: n for name, n in calls.items() if n} == {"runs/record.py": 1}


def test_the_exceptions_are_needed() -> None:
    for name in OWN_TABLES:
        assert list(_plain_writes(ast.parse((ROOT / name).read_text()))), f"{name} writes nothing any more"
    for name in RAW_ALLOWED:
        assert RAW.search((ROOT / name).read_text()), f"{name} writes nothing any more"


@pytest.mark.parametrize(
    "source",
    [
        "Run.objects.filter(pk=1).update(state='completed')",
        "effect = Effect.objects.get(pk=1)\neffect.save()",
        "for one in Review.objects.all():\n    one.delete()",
        "if (row := Approval.objects.first()):\n    row.save()",
        "Event.objects.bulk_create([])",
    ],
)
def test_the_search_for_writers_finds_them(source: str) -> None:
    assert list(_record_writes(ast.parse(source)))


def test_the_search_for_writers_leaves_others_alone() -> None:
    source = "seen = {}\nseen.update(a=1)\nhash.update(b'')\nrun = Run.objects.get(pk=1)\nprint(run.state)"
    assert not list(_record_writes(ast.parse(source))) and not list(_plain_writes(ast.parse(source)))


# --- directions that import-linter does not see


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{_name(path)}: relative import"
            found.add(node.module)
    return found


def test_the_demo_imports_what_authors_import() -> None:
    for path in SOURCES:
        if path.is_relative_to(ROOT / "demo"):
            ours = {name for name in _imports(path) if name.partition(".")[0] in {*APPS, "tests"}}
            beyond = {n for n in ours if not n.startswith(("demo.", "recovery.contract", "recovery.ports."))}
            assert not beyond, f"{_name(path)} imports {beyond}"


def test_no_app_imports_the_tests() -> None:
    for path in SOURCES:
        assert not {name for name in _imports(path) if name.partition(".")[0] == "tests"}, _name(path)


# --- files

LONGEST = 400
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
ONE_MACHINE = re.compile(
    r"(?<![\w.])/(?:work|home/\w+|root|Users|mnt/\w+|tmp/brief)\b|\.\./sha" + r"red|[A-Z]:\\\\Users|/sha" + r"red/seeds"
)


def test_files_are_short() -> None:
    counts = {_name(p): len(p.read_text().splitlines()) for p in _files() if "migrations" not in p.parts}
    assert len(counts) > 200
    assert {name: n for name, n in counts.items() if n > LONGEST} == {}


def test_files_are_finished_and_of_no_machine() -> None:
    for path in _files():
        for line, content in enumerate(path.read_text().splitlines(), 1):
            for pattern in (UNFINISHED, ONE_MACHINE):
                assert not pattern.search(content), f"{_name(path)}:{line}: {content.strip()}"


def test_the_search_for_machines_finds_them() -> None:
    for text in ("/ro" + "ot/.cache", 'open("/wo' + 'rk/x")', "/ho" + "me/ada/x", "read ../sha" + "red/x"):
        assert ONE_MACHINE.search(text), text
    for text in ("/workspaces/acme", "network/work/x", "/var/log", "homework"):
        assert not ONE_MACHINE.search(text), text
