"""Run types: steps, what they may return, data that can be kept, and what a check names."""

from __future__ import annotations

from datetime import UTC, datetime
from types import ModuleType
from typing import Any, ClassVar
from uuid import UUID

import pytest
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict

from recovery.contract import (
    Checkpoints,
    EffectState,
    Fail,
    Finish,
    LeaseRules,
    Ownership,
    Perform,
    Pins,
    Quarantine,
    RunContract,
    RunType,
    StateSchema,
    StepOutcome,
    StepRun,
    Targets,
    UnknownBeforeResume,
    Wait,
    days,
    minutes,
    seconds,
    step,
)
from recovery.contract.errors import CanonicalError, ParamsInvalid, UnknownSignal, UnknownStep
from recovery.contract.inspection import run_type_findings
from recovery.contract.registry import Registry
from tests.unit.samples import T0, contract

TEN: dict[str, Any] = {
    "state_schema": StateSchema(version=1, migrates_from={}),
    "checkpoints": Checkpoints(max_loss=0),
    "ownership": Ownership(signals={}, timers=True, owner="payments-oncall", deadline=days(1), cancel_needs="cancel"),
    "lease": LeaseRules(fresh_for=seconds(60), tries=3, transitions=50, slice=seconds(5)),
    "pins": Pins(pinned=("type",), migrates_from={}),
    "revalidation": ("identity",),
    "unknown_before_resume": UnknownBeforeResume.SETTLE_FIRST,
    "targets": Targets(recover_within=seconds(20), drain_within=minutes(60)),
    "quarantine": Quarantine(group="payments-oncall", runbook="quarantined"),
    "proofs": (),
}


class Changed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    amount: int


class Data(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    amount: int = 1
    extra: Any = None


class Sample(RunType):
    name = "orders.sample"
    version = 1
    Data = Data
    contract = RunContract(
        **{
            **TEN,
            "ownership": Ownership(
                signals={"order.changed": Changed},
                timers=True,
                owner="o",
                deadline=None,
                cancel_needs="cancel",
            ),
        }
    )
    reasons: ClassVar[dict[str, Any]] = {"why": _("Because {n}.")}

    def describe(self, data: Data) -> Any:
        return _("A sample")

    def references(self, data: Data) -> list[str]:
        return []

    @step(title=_("Begin"))
    def begin(self, run: StepRun) -> Any:
        return run.data.extra

    @step(title=_("Then"))
    def then(self, run: StepRun, outcome: StepOutcome) -> Any:
        return Finish(verified=outcome.evidence)

    def helper(self) -> None:
        """No step."""


def run(**data: Any) -> StepRun:
    return StepRun(UUID(int=1), Data(**data), T0, None, "svc-orders")


def findings(cls: type[RunType]) -> set[tuple[str, str]]:
    return {(finding.id, finding.field) for finding in run_type_findings(cls)}


def test_a_whole_run_type_has_no_problem_and_knows_its_steps() -> None:
    assert findings(Sample) == set()
    assert set(Sample.steps) == {"begin", "then"}
    assert str(Sample().title_of("begin")) == "Begin"
    assert Sample().reason_text("why", {"n": 3}) == "Because 3."


@pytest.mark.parametrize("name", sorted(TEN))
def test_each_of_the_ten_points_is_required(name: str) -> None:
    """A run type's contract has ten points; a missing one is named."""
    cls = type("Unfinished", (Sample,), {"contract": RunContract(**{k: v for k, v in TEN.items() if k != name})})
    assert ("E002", f"contract.{name}") in findings(cls)


def test_there_are_ten_points() -> None:
    assert len(TEN) == 10
    assert RunContract(**TEN).missing == ()
    assert RunContract(**TEN, colour="red").missing == ("colour (not a field)",)


@pytest.mark.parametrize("name", ["name", "version", "Data", "contract", "reasons", "describe", "references"])
def test_a_missing_attribute_is_named(name: str) -> None:
    body = {k: v for k, v in vars(Sample).items() if k != name and not k.startswith("__")}
    cls = type("Unfinished", (RunType,), body)
    assert ("E009", name) in findings(cls)


def test_steps_and_titles_are_checked() -> None:
    body = {k: v for k, v in vars(Sample).items() if k != "begin" and not k.startswith("__")}
    body["named"] = step(title="Plain")(lambda self, run: None)
    body["reasons"] = {"why": "Plain"}
    cls = type("Odd", (RunType,), body)
    assert {("E010", "begin"), ("E011", "step named"), ("E011", "reason why")} <= findings(cls)


def test_data_that_json_cannot_carry_is_named_at_start() -> None:
    class Bad(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)

        fine: int = 1
        thread: ModuleType | None = None

    assert ("E008", "Data.thread") in findings(type("Odd", (Sample,), {"Data": Bad}))


@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ({"a": [1, {"b": object()}]}, "$.extra.a[1].b"),
        ({"a": float("nan")}, "$.extra.a"),
        ([2**60], "$.extra[0]"),
        ({"a": b"bytes"}, "$.extra.a"),
    ],
)
def test_data_that_cannot_be_kept_fails_with_its_path(extra: Any, path: str) -> None:
    """Encoded in full before anything is written; the field's path is named."""
    with pytest.raises(CanonicalError) as refused:
        Sample().dump(Data(extra=extra))
    assert refused.value.path == path


def test_data_that_can_be_kept_comes_back() -> None:
    data = Data(extra={"at": datetime(2026, 1, 1, tzinfo=UTC), "id": UUID(int=5)})
    kept = Sample().dump(data)
    assert kept["extra"] == {"at": "2026-01-01T00:00:00+00:00", "id": str(UUID(int=5))}
    assert Sample().load(kept).amount == 1


@pytest.mark.parametrize("nonsense", [None, "then", 7, {"then": "x"}, Perform])
def test_a_step_that_returns_nonsense_is_refused(nonsense: Any) -> None:
    with pytest.raises(TypeError, match="step 'begin' returned"):
        Sample().call("begin", run(extra=nonsense))


def test_an_unknown_step_is_refused() -> None:
    for name in ("helper", "nobody"):
        with pytest.raises(UnknownStep):
            Sample().call(name, run())


def test_a_step_receives_what_it_takes() -> None:
    outcome = StepOutcome(EffectState.SUCCEEDED, "payments.refund", "k", evidence=(UUID(int=3),))
    assert Sample().call("then", run(), outcome) == Finish(verified=[UUID(int=3)])
    assert Sample().call("begin", run(extra=Fail("why", n=1)), outcome) == Fail("why", n=1)


def test_signals_are_validated_by_their_model() -> None:
    """A signal that a step could choke on is refused before it is kept."""
    assert Sample().load_signal("order.changed", {"amount": 5}).payload == {"amount": 5}
    with pytest.raises(UnknownSignal):
        Sample().load_signal("order.lost", {})
    with pytest.raises(ParamsInvalid) as refused:
        Sample().load_signal("order.changed", {"amount": "x", "more": 1})
    assert set(refused.value.fields) == {"amount", "more"}


def test_invalid_input_names_each_field() -> None:
    with pytest.raises(ParamsInvalid) as refused:
        Sample().load({"amount": "much"})
    assert set(refused.value.fields) == {"amount"}


def test_transitions_refuse_what_makes_no_sense() -> None:
    request = contract()(charge="ch", amount=1, currency="EUR")
    assert Perform(request, then=Sample().then).then == "then"
    assert Perform(request, then="then", on={"x": Sample().then}).on == {"x": "then"}
    for wrong in (
        lambda: Perform(then="then"),
        lambda: Perform(request, then="then", join="any"),
        lambda: Wait(then="then"),
        lambda: Wait(then="then", until=T0, event="x"),
        lambda: Wait(then="then", until=T0, timeout=seconds(1)),
        lambda: Wait(then="then", until=datetime(2026, 1, 1)),  # noqa: DTZ001
        lambda: Fail(""),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError):
        Perform(request, then=7)  # type: ignore[arg-type]


def test_a_run_type_is_registered_once_by_name_and_version() -> None:
    registry = Registry()
    registry.add_run_type(Sample, "shop")
    registry.add_run_type(type("Copy", (Sample,), {}), "market")
    assert registry.run_type("orders.sample").version == 1
    assert [problem.id for problem in registry.problems()] == ["recovery.E005"]


def test_the_digest_is_about_data_not_sentences() -> None:
    other = type("Sample", (Sample,), {"reasons": {"why": _("Since {n}.")}})
    assert other().digest == Sample().digest
    assert type("Sample", (Sample,), {"version": 2})().digest != Sample().digest
