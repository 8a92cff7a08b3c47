"""`manage.py drill` on the live stack: real processes, the sandbox's ledger as the judge, the verdict kept."""

from __future__ import annotations

import json

import psycopg
import pytest

from recovery.drills.catalogue import DRILLS
from tests.stack import Stack

QUICK = ["worker_killed"]
WHO = ("--person", "author-g@acme.example")


def drill(stack: Stack, name: str) -> None:
    done = stack.manage("drill", name, *WHO, "--runs", "5", "--json", timeout=240)
    verdict = json.loads(done.stdout.strip().splitlines()[-1])
    assert verdict["passed"] and verdict["bit"] and verdict["counts"]["completed"] >= 1
    with psycopg.connect(stack.settings["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT state, verdict FROM runs_drill WHERE name = %s ORDER BY id DESC", [name])
        state, kept = row.fetchone() or ("", {})
    assert state == "passed" and kept["counts"] == verdict["counts"]


@pytest.mark.parametrize("name", QUICK)
def test_passes(stack: Stack, name: str) -> None:
    drill(stack, name)


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [name for name in DRILLS if name not in QUICK])
def test_every_other_passes(stack: Stack, name: str) -> None:
    drill(stack, name)
