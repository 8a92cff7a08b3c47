"""The docs name what exists and nothing else, and what they show works as it stands."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType
from uuid import uuid4

import pytest
from django.core.management import get_commands

from console.management.commands import diagrams
from recovery.contract import Fail, Finish, Perform, StepOutcome, StepRun, Wait
from recovery.contract.inspection import effect_findings, run_type_findings
from recovery.engine.reasons import REASONS
from runs import states
from runs.states import EffectState, EventKind

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TEXT = {page.relative_to(ROOT).as_posix(): page.read_text() for page in PAGES}
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
NAMES = "runs|recovery|console|demo|tests|docs|static|templates|requirements|locale"


def _quoted(text: str) -> list[str]:
    return CODE.findall(FENCE.sub("", text))


QUOTED = [(page, name) for page, text in TEXT.items() for name in _quoted(text)]


def _defines(path: Path, name: str) -> bool:
    nodes = ast.walk(ast.parse(path.read_text()))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in nodes)


def test_every_path_that_is_named_exists() -> None:
    found = 0
    for page, name in QUOTED:
        if not re.fullmatch(rf"({NAMES})/[\w./-]*", name):
            continue
        found += 1
        assert (ROOT / name).exists(), f"{page} names {name}"
    assert found > 60


def test_every_test_that_is_named_exists() -> None:
    found = 0
    for page, name in QUOTED:
        path, sign, function = name.partition("::")
        if not sign:
            continue
        found += 1
        assert _defines(ROOT / path, function), f"{page} names {name}"
    assert found > 50


def test_every_dotted_name_of_ours_exists() -> None:
    found = 0
    for page, name in QUOTED:
        if not re.fullmatch(r"(runs|recovery|console)(\.\w+)+", name) or name.partition(".")[2] in _check_ids():
            continue
        if name in EventKind.values:
            continue
        found += 1
        module, _, attribute = name.rpartition(".")
        path = ROOT / (module.replace(".", "/") + ".py")
        assert path.exists() and re.search(rf"^(def|class) {attribute}\b|^{attribute}\b", path.read_text(), re.M), (
            f"{page} names {name}"
        )
    assert found >= 2


def _check_ids() -> set[str]:
    sources = [*(ROOT / "recovery").rglob("*.py"), ROOT / "console" / "checks.py"]
    return {name for path in sources for name in re.findall(r"\b([EW]\d{3})\b", path.read_text())}


def test_every_event_that_is_named_exists() -> None:
    nouns = {kind.partition(".")[0] for kind in EventKind} - {"person"}
    for page, name in QUOTED:
        noun, dot, rest = name.partition(".")
        if dot and noun in nouns and rest.replace("_", "").isalpha():
            assert name in EventKind.values or (noun, rest) in PYTHON, f"{page} names {name}"


PYTHON = {("run", "now"), ("run", "config"), ("run", "context")}
"""What reads like an event and is an attribute that steps use."""


def test_every_command_and_target_that_is_named_exists() -> None:
    commands = {*get_commands(), "up"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    found = 0
    for page, text in TEXT.items():
        for command in re.findall(r"manage\.py ([a-z_]+)", text):
            found += 1
            assert command in commands, f"{page} names manage.py {command}"
        for target in re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)(?=`|\s{2,}|$| ARGS)", text, re.M):
            found += 1
            assert target in targets, f"{page} names make {target}"
    assert found > 20


def test_every_link_leads_somewhere() -> None:
    for page, text in TEXT.items():
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


def test_every_state_is_named() -> None:
    named = set(re.findall(r"\w+", TEXT["docs/states.md"]))
    for enum in (
        states.RunState,
        states.WaitingOn,
        states.EffectState,
        states.AttemptState,
        states.ApprovalState,
        states.SignatureState,
        states.VerdictState,
        states.VerdictSays,
        states.ReviewState,
        states.ReviewKind,
    ):
        assert not set(enum.values) - named, enum.__name__


def test_every_kind_of_event_is_described_and_none_besides() -> None:
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (\w.+) \|$", TEXT["docs/events.md"], re.M)
    assert sorted(kind for kind, _ in rows) == sorted(EventKind.values)


def test_every_reason_and_refusal_is_named() -> None:
    named = {name for page, name in QUOTED if page == "docs/reference.md"}
    assert not set(REASONS) - named
    assert not set(diagrams.refusals()) - named


def test_every_setting_is_described_and_none_besides() -> None:
    source = (ROOT / "console" / "settings.py").read_text() + (ROOT / "recovery" / "failpoints.py").read_text()
    read = set(
        re.findall(
            r'(?:env\.(?:required|listing|flag|integer|choice)\(|env(?:iron)?\.(?:values\.)?get\()\s*"([A-Z_]+)"',
            source,
        )
    )
    described = set(re.findall(r"^\| `([A-Z_]+)` \| (?:yes|no) \|", TEXT["docs/reference.md"], re.M))
    assert described == read
    example = set(re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.M))
    assert described - {"RECOURSE_FAILPOINTS", "RECOURSE_DRILLS"} == example - {"DJANGO_SETTINGS_MODULE"}


@pytest.mark.parametrize("file", sorted(diagrams.MADE))
def test_what_is_drawn_from_the_code_is_current(file: str) -> None:
    """``manage.py diagrams`` writes it."""
    assert diagrams.redrawn(file, TEXT[f"docs/{file}"]) == TEXT[f"docs/{file}"]


def test_a_missing_mark_is_named() -> None:
    with pytest.raises(ValueError, match="reason codes"):
        diagrams.redrawn("reference.md", "no marks here")


def test_a_drawing_that_is_not_current_is_redrawn() -> None:
    text = TEXT["docs/reference.md"].replace("`send_now`", "`send_later`")
    assert diagrams.redrawn("reference.md", text) == TEXT["docs/reference.md"]


# --- coverage

SECTIONS = {
    "Checklist": 19,
    "Failure modes": 12,
    "Failure classes": 10,
    "The thirteen points of an operation's contract": 13,
    "The ten points of a run type's contract": 10,
}


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_each_item_has_code_and_a_test_or_is_called_later(section: str) -> None:
    part = TEXT["docs/coverage.md"].partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\|( \d+ \|.*)\|$", part, re.M)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert [int(row[0]) for row in rows] == list(range(1, SECTIONS[section] + 1))
    for number, asked, state, code, test, missing in rows:
        assert asked and state in {"now", "partly", "later"}, number
        if state == "later":
            assert (code, test) == ("later", "later"), number
        else:
            assert CODE.findall(code) and all("::" in name for name in CODE.findall(test) or [""]), number
        assert bool(missing) is (state != "now"), number


# --- the contracts page is tried as written


@pytest.fixture(scope="module")
def written() -> ModuleType:
    """All Python of docs/contracts.md, and of docs/versions.md after it, as one module."""
    pages = TEXT["docs/contracts.md"] + TEXT["docs/versions.md"]
    source = "\n\n".join(re.findall(r"^```python\n(.*?)^```", pages, re.S | re.M))
    module = ModuleType("docs_contracts")
    exec(compile(source, "docs/contracts.md", "exec"), vars(module))
    return module


def test_the_contract_in_the_docs_is_whole(written: ModuleType) -> None:
    """Thirteen points and ten: the system check finds nothing to name."""
    assert list(effect_findings(written.grant_points)) == []
    assert list(run_type_findings(written.ThankCustomer)) == []
    assert list(run_type_findings(written.ThankCustomerTwo)) == []
    assert list(written.many_points.problems()) == []


def test_a_field_less_is_named(written: ModuleType) -> None:
    from dataclasses import replace

    from recovery.contract.effects import MISSING

    short = replace(written.grant_points, reconcile=MISSING, missing=("reconcile",))
    assert [(one.id, one.field) for one in effect_findings(short)] == [("E002", "reconcile")]


def test_the_run_type_in_the_docs_runs(written: ModuleType) -> None:
    from datetime import UTC, datetime

    kind = written.ThankCustomer()
    data = kind.load({"member": "m-1", "order": "A-1", "points": 100})
    run = StepRun(id=uuid4(), data=data, now=datetime.now(UTC), deadline=None, principal="shop")
    assert isinstance(kind.call("begin", run), Wait)
    performed = kind.call("delivered", run, kind.load_signal("order.delivered", {"signed_by": "Ada"}))
    assert isinstance(performed, Perform) and performed.then == "granted"
    (request,) = performed.requests
    assert (request.key(run), request.sentence("en")) == ("points:A-1", "Give m-1 100 points for order A-1")
    assert kind.call("delivered", run, None) == Fail("not_delivered")
    outcome = StepOutcome(EffectState.SUCCEEDED, "points.grant", "points:A-1", evidence=(uuid4(),))
    assert kind.call("granted", run, outcome) == Finish(verified=outcome.evidence)


def test_the_readme_begins_with_the_two_commands() -> None:
    commands = re.findall(r"^    (.+)$", TEXT["README.md"], re.M)
    assert commands[:2] == ["make run", "make test"]
    assert TEXT["README.md"].index("make run") < 40


def test_the_request_in_the_docs_is_one_that_the_demo_takes() -> None:
    import json

    from demo.contracts import CancelOrder

    for page in ("README.md", "docs/quickstart.md"):
        bodies = re.findall(r"-d '(\{.*?\})'", TEXT[page], re.S)
        assert len(bodies) == 1
        body = json.loads(bodies[0])
        assert body["type"] == CancelOrder.name
        CancelOrder().load(body["input"])
