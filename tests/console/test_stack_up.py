"""`manage.py up` as a person sees it: one real stack, and the refusals."""

import json
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest

from console.stack import control
from console.stack.layout import PROJECT
from console.stack.ports import free_port
from tests.stack import Stack, running

PARTS = {"postgres", "valkey", "sandbox", "web", "sweep", "advance", "dispatch"}


def up(*options: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to be refused."""
    return subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), "up", *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def health(stack: Stack) -> dict[str, str]:
    with urllib.request.urlopen(f"{stack.address}/healthz", timeout=5) as answer:
        body = json.loads(answer.read())
    return {name: part["state"] for name, part in body["parts"].items()}


@pytest.mark.timeout(300)  # three starts, on whatever machine
def test_it_comes_up_says_so_and_ends_without_a_trace() -> None:
    """Ready means that each part is up; Ctrl-C ends all of it within 10 s; a second start finds its data."""
    with tempfile.TemporaryDirectory(prefix="rc-") as name:
        data = Path(name)
        with running("--no-demo", data=data) as stack:
            assert health(stack) == dict.fromkeys(PARTS, "up")
            accounts = stack.accounts
            assert len(accounts) == 6
            said = stack.said()
            assert f"Ready: {stack.address}/" in said
            assert all(email in said and password in said for email, password in accounts.items())
            assert stack.manage("accounts").stdout.strip() in said
            pids = {part: stack.pid(part) for part in PARTS}

            refused = up("--data", name, "--no-demo", "--port", str(free_port()))
            assert refused.returncode == 2
            assert f"process {stack.process.pid} holds its lock" in refused.stderr

            with control.held(data, "sandbox"):
                pass
            stack.process.send_signal(signal.SIGINT)
            assert stack.end() == 0
            assert not [part for part, pid in pids.items() if Path(f"/proc/{pid}").exists()]
            assert "Everything has ended" in stack.said()

        with running("--no-demo", data=data) as stack:
            assert stack.accounts == accounts
            assert health(stack) == dict.fromkeys(PARTS, "up")
            stack.process.kill()
            stack.process.wait()
        with running("--no-demo", data=data, ready="Starting PostgreSQL") as stack:
            assert "Took over the lock of process" in stack.said()


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        refused = up("--port", str(listener.getsockname()[1]), "--data", str(tmp_path / "d"))
    assert refused.returncode == 2
    assert "is in use by another process" in refused.stderr
    assert not (tmp_path / "d").exists()


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = up("--port", "0", "--data", str(tmp_path / "file"))
    assert refused.returncode == 2
    refused = up("--data", str(tmp_path / "file" / "d"), "--port", "18999")
    assert refused.returncode == 2
    assert "cannot be used" in refused.stderr


@pytest.mark.parametrize("workers", ["0", "-1"])
def test_no_workers_are_refused(workers: str, tmp_path: Path) -> None:
    refused = up("--workers", workers, "--data", str(tmp_path / "d"))
    assert refused.returncode == 2
    assert "--workers takes a number from 1" in refused.stderr
