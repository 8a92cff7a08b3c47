"""The whole stack as real processes, for browser and fault tests."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from console.stack import control, environment
from console.stack.layout import PROJECT, Layout
from console.stack.ports import free_port
from console.stack.secrets import Secrets

START = 120  # seconds a slow machine may need


@dataclass
class Stack:
    """A running `manage.py up`."""

    address: str
    data: Path
    process: subprocess.Popen[bytes]
    output: Path

    @property
    def accounts(self) -> dict[str, str]:
        """E-mail to password."""
        return Secrets(Layout.at(self.data).secrets).accounts()

    @property
    def settings(self) -> dict[str, str]:
        """The settings its processes run with; RECOURSE_SANDBOX_URL is the sandbox's address."""
        return environment.load(self.data)

    def manage(self, *arguments: str, timeout: float = 60, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a `manage.py` command inside its environment; fails the test when the command fails."""
        done = subprocess.run(
            [sys.executable, str(PROJECT / "manage.py"), *arguments],
            env={**_outside(), **self.settings, **more},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"manage.py {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
        return done

    def pid(self, part: str) -> int:
        return control.pid(self.data, part)

    def said(self) -> str:
        """What it printed so far."""
        return self.output.read_text(errors="replace")

    def end(self, number: signal.Signals = signal.SIGINT, *, seconds: float = 15) -> int:
        """Ask it to end; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=seconds)


@contextmanager
def running(*options: str, data: Path | None = None, ready: str = "Ready: ", **more: str) -> Iterator[Stack]:
    """Start `manage.py up` on a free port, wait until it says `ready`, end it afterwards. `more`: environment."""
    folder = data or Path(tempfile.mkdtemp(prefix="rc-"))
    port = free_port()
    output = folder / "up.out"
    command = [sys.executable, str(PROJECT / "manage.py"), "up", "--port", str(port), "--data", str(folder)]
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*command, *options],
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**_outside(), **more},
            start_new_session=True,
        )
    running_stack = Stack(f"http://127.0.0.1:{port}", folder, process, output)
    try:
        until = time.monotonic() + START
        while ready not in running_stack.said():
            assert process.poll() is None, f"up ended with {process.returncode}:\n{running_stack.said()}"
            assert time.monotonic() < until, f"up is not ready after {START} s:\n{running_stack.said()}"
            time.sleep(0.05)
        yield running_stack
    finally:
        if process.poll() is None:
            running_stack.end()
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The stack without demo runs, shared by the tests of a session."""
    with running("--no-demo") as running_stack:
        yield running_stack


def _outside() -> dict[str, str]:
    """This environment without the test run's own settings."""
    ours = {"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "DJANGO_SETTINGS_MODULE"}
    return {name: value for name, value in os.environ.items() if name not in ours and not name.startswith("RECOURSE_")}
