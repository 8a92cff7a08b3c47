"""A drill arms failpoints through the environment of the process that it starts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from recovery import failpoints
from tests.stack import PROJECT


def _checked(armed: str) -> subprocess.CompletedProcess[str]:
    """``manage.py check`` in a process of its own."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import django; django.setup(); from recovery import failpoints;"
            " failpoints.hit('advance.leased'); print('lived')",
        ],
        env={**os.environ, "RECOURSE_FAILPOINTS": armed},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_is_armed_when_the_process_starts() -> None:
    done = _checked("advance.leased=raise")
    assert done.returncode == 1 and "Failpoint: advance.leased" in done.stderr


def test_without_it_a_point_does_nothing() -> None:
    assert _checked("").stdout == "lived\n"


def test_a_point_or_an_action_that_does_not_exist_is_named() -> None:
    assert "no failpoint is called 'nowhere'" in _checked("nowhere=kill").stderr
    with pytest.raises(ValueError, match="is no action of a failpoint"):
        failpoints.arm("send.before", "explode")
