"""The sandbox as a process of its own: start, command line, restart, and every way to end."""

import ast
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from recovery.sandbox.client import SandboxClient
from recovery.sandbox.server import Sandbox
from recovery.sandbox.store import StoreInUse, StoreUnusable

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "recovery.sandbox"]
type Start = Callable[[], tuple[subprocess.Popen[str], str]]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=20)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts sandboxes on one file, one after another; each is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin() -> tuple[subprocess.Popen[str], str]:
        command = [*COMMAND, "serve", "--port", "0", "--db", str(tmp_path / "sandbox.db")]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening on http://127.0.0.1:" in line
        return process, line.split()[3].rstrip(",")

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_ledger_keys_and_dials_survive_a_kill(start: Start, wire_to: Callable[[str], Any]) -> None:
    process, url = start()
    SandboxClient(url).dial("payments", reply="drop", times=3)
    with pytest.raises(ConnectionError):
        wire_to(url).post("payments", "k-1")
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, url = start()
    client = SandboxClient(url)
    assert client.applied("k-1") == 1
    assert (client.dials()["payments"]["reply"], client.dials()["payments"]["times"]) == ("drop", 2)
    client.reset()
    again = wire_to(url).post("payments", "k-1")
    assert (again.status, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert client.applied("k-1") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_second_also_while_a_request_waits(
    start: Start, wire_to: Callable[[str], Any], number: signal.Signals
) -> None:
    process, url = start()
    client = SandboxClient(url)
    client.dial("cards-eu", delay_before=3600)
    ended: list[BaseException] = []

    def post() -> None:
        try:
            wire_to(url).post("cards-eu", "k-1")
        except ConnectionError as error:
            ended.append(error)

    thread = threading.Thread(target=post)
    thread.start()
    while not client.requests("k-1"):
        assert thread.is_alive()
    process.send_signal(number)
    assert process.wait(60) == 0, "it does not wait for the hour that the request would take"
    thread.join()
    assert len(ended) == 1
    _, url = start()
    assert SandboxClient(url).applied("k-1") == 0
    assert SandboxClient(url).requests("k-1")[0]["verdict"] == "waiting"


def test_a_file_has_one_sandbox(sandbox: Sandbox) -> None:
    with pytest.raises(StoreInUse, match="another sandbox holds"):
        Sandbox(sandbox.store.path)
    said = run("serve", "--port", "0", "--db", str(sandbox.store.path))
    assert (said.returncode, said.stderr.strip()) == (
        1,
        f"sandbox: another sandbox holds {sandbox.store.path}",
    )


def test_a_port_in_use_and_a_file_that_is_no_database_are_said(sandbox: Sandbox, tmp_path: Path) -> None:
    port = sandbox.url.rpartition(":")[2]
    said = run("serve", "--port", port, "--db", str(tmp_path / "other.db"))
    assert said.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in said.stderr
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(StoreUnusable, match="not a database"):
        Sandbox(tmp_path / "text.db")


def test_the_command_line_dials_shows_and_resets(sandbox: Sandbox, wire: Any) -> None:
    to = ("--url", sandbox.url)
    said = run("dial", "cards-eu", "reply=drop", "times=1", "match=8400", *to)
    assert (said.returncode, said.stderr) == (0, "")
    assert "reply=drop times=1 match=8400" in said.stdout
    assert sandbox.dials.get("cards-eu").match == "8400"
    with pytest.raises(ConnectionError):
        wire.post("cards-eu", "k-1")
    wire.post("cards-eu", "k-1")
    table = run("ledger", *to).stdout.splitlines()
    assert table[0].split() == ["PROVIDER", "APPLIED", "RECEIVED", "INTENT"]
    assert table[1].split() == ["cards-eu", "2", "2", "k-1"]
    assert table[2] == "1 intents, 2 effects, 1 intents applied more than once"
    assert '"applied": 2' in run("ledger", "--intent", "k-1", "--json", *to).stdout
    sandbox.dial("mail", keys=False)
    assert "keys=false" in run("dials", *to).stdout
    assert run("reset", "mail", *to).returncode == 0
    assert sandbox.dials.get("mail").keys is True
    assert run("reset", *to).stdout.count("reply=ok") == 4
    assert "status=ok" in run("health", *to).stdout


def test_the_command_line_refuses_in_a_sentence(sandbox: Sandbox) -> None:
    to = ("--url", sandbox.url)
    for arguments, words in [
        (("dial", "cards-eu", "replly=drop", *to), "replly is not a dial"),
        (("dial", "cards-eu", "times=many", *to), "times cannot be 'many'"),
        (("dial", "nobody", "reply=drop", *to), "nobody is not a provider"),
        (("dial", "cards-eu", "drop", *to), "drop is not name=value"),
        (("health", "--url", "http://127.0.0.1:1"), "no sandbox answers"),
        (("health", "--url", "nowhere"), "not an address"),
    ]:
        said = run(*arguments)
        assert said.returncode == 1
        assert words in said.stderr
        assert "Traceback" not in said.stderr


def test_it_imports_nothing_of_ours() -> None:
    """The judge of the fault tests is independent of what it judges."""
    allowed = set(sys.stdlib_module_names) | {"standardwebhooks"}
    files = list((ROOT / "recovery" / "sandbox").rglob("*.py"))
    assert len(files) > 10
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.startswith("recovery.sandbox") or name.split(".")[0] in allowed, f"{path}: {name}"


def test_stopping_leaves_no_thread_and_no_open_file(tmp_path: Path, wire_to: Callable[[str], Any]) -> None:
    before, files = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with Sandbox(tmp_path / "sandbox.db") as sandbox:
            assert wire_to(sandbox.url).post("notices").status == 201
    assert set(threading.enumerate()) <= before
    assert len(os.listdir("/proc/self/fd")) == files


def test_stopping_breaks_off_a_waiting_request_at_once(tmp_path: Path, wire_to: Callable[[str], Any]) -> None:
    """Nothing is applied after the end, and no thread waits on."""
    before = set(threading.enumerate())
    with Sandbox(tmp_path / "sandbox.db") as sandbox, ThreadPoolExecutor(1) as pool:
        sandbox.dial("payments", delay_before=3600)
        answer = pool.submit(wire_to(sandbox.url).post, "payments", "k-1")
        while not sandbox.requests("k-1"):
            assert not answer.done()
        sandbox.stop()
        with pytest.raises(ConnectionError):
            answer.result(60)
    assert set(threading.enumerate()) <= before
