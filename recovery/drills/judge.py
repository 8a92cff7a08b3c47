"""What must be true afterwards, judged by the sandbox's own ledger and by the record's chains."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction

from recovery.sandbox.client import SandboxClient
from runs.history import chain, fold
from runs.models import Effect, Review, Run
from runs.states import RUN_ENDED, EffectState, RunState


@dataclass(slots=True)
class Verdict:
    """``wrong``: sentences, empty when everything holds. ``counts``: runs by where they came to."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def visibly_waits(run: Run) -> str:
    """What a run that has not ended visibly waits for, or an empty text."""
    if run.state == RunState.PAUSED or Review.objects.filter(run=run, state="open").exists():
        return "a person"
    effects = list(Effect.objects.filter(run=run).exclude(next_check_at=None, state=EffectState.READY))
    if any(e.next_check_at is not None for e in effects):
        return "a check with its dependency"
    return ""


def settled(ids: Iterable[UUID]) -> bool:
    """Whether every run has ended or waits for a person."""
    open_runs = Run.objects.filter(pk__in=list(ids)).exclude(state__in=RUN_ENDED)
    return all(visibly_waits(run) == "a person" for run in open_runs)


def wait_until_settled(ids: list[UUID], seconds: float) -> float:
    """Wait until nothing moves by itself any more; seconds it took (at most ``seconds``)."""
    began = time.monotonic()
    while not settled(ids) and time.monotonic() - began < seconds:
        time.sleep(0.5)
    return time.monotonic() - began


def judge(ids: list[UUID], sandbox: SandboxClient, *, only_theirs: bool = False) -> Verdict:
    """Check every run and its chain, and every intent in the ledger, or ``only_theirs``."""
    verdict = Verdict()
    verdict.counts["accepted"] = len(ids)
    for id in ids:
        with transaction.atomic():
            # Under its lock: what waits for a person is still checked now and then, and its chain grows.
            run = Run.objects.select_for_update(no_key=True).filter(pk=id).first()
            if run is None:
                verdict.wrong.append(f"run {id} was accepted and is not in the record")
                continue
            _judge_run(run, verdict)
    effects = list(Effect.objects.filter(run_id__in=ids))
    keys = {effect.sent_key for effect in effects}
    ledger = [line for line in sandbox.ledger() if line["intent"] in keys or not only_theirs]
    verdict.counts["intents"] = len(ledger)
    for line in ledger:
        if line["applied"] > 1:
            verdict.wrong.append(f"{line['provider']} {line['intent']}: took effect {line['applied']} times")
    applied = {line["intent"]: line["applied"] for line in ledger}
    for effect in effects:
        _judge_effect(effect, applied.get(effect.sent_key, 0), verdict)
    return verdict


def _moved(run: Run) -> bool:
    """Read the run again; whether its head is another one by now."""
    before = run.head_seq
    run.refresh_from_db()
    return run.head_seq != before


def _judge_run(run: Run, verdict: Verdict) -> None:
    if run.state in RUN_ENDED:
        verdict.counts[run.state] += 1
    else:
        waits = visibly_waits(run)
        verdict.counts[f"waits for {waits}" if waits else "stuck"] += 1
        if not waits:
            verdict.wrong.append(f"run {run.pk} is {run.state} {run.waiting_on} and waits for nothing that shows")
    report = chain.verify_run(run)
    while not report.ok and _moved(run):
        # Checks go on while it waits for a person: a line was written after its head was read.
        report = chain.verify_run(run)
    if not report.ok:
        verdict.wrong.append(f"run {run.pk}: {report.why}")
    verdict.wrong += [f"run {run.pk}: {line}" for line in fold.differences(run)]
    if run.state == RunState.COMPLETED:
        for effect in run.effects.all():
            if not effect.settled:
                verdict.wrong.append(f"run {run.pk} is completed with {effect} {effect.state}")


def _judge_effect(effect: Any, applied: int, verdict: Verdict) -> None:
    if effect.state == EffectState.SUCCEEDED and applied != 1:
        verdict.wrong.append(f"{effect} happened by the record, {applied} times by the ledger")
    if effect.state in (EffectState.NOT_APPLIED, EffectState.EXPIRED, EffectState.CANCELLED) and applied:
        verdict.wrong.append(f"{effect} is {effect.state} by the record, applied {applied} times by the ledger")
