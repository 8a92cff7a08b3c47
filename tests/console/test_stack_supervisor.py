"""The supervisor: what dies is started again and said; what keeps dying ends everything; nothing stays."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.stack import control
from console.stack.errors import StackError
from console.stack.layout import PROJECT, Layout
from console.stack.process import Part
from console.stack.supervisor import Stopped, Supervisor


class Run:
    """A supervisor in a folder, and what it said."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.said: list[str] = []
        self.supervisor = Supervisor(layout, self.said.append)

    def part(self, name: str, script: str, **options: float) -> Part:
        command = ("sh", "-c", script)
        log = self.layout.log / f"{name}.log"
        return Part(name, command, {"PATH": os.environ["PATH"]}, log, self.layout.data, **options)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    layout = Layout.at(tmp_path)
    layout.make()
    it = Run(layout)
    yield it
    it.supervisor.stop()


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def soon(true: Callable[[], bool], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_what_dies_is_started_again_and_said(run: Run) -> None:
    part = run.part("sweep", "test -e again && exec sleep 60; touch again; exit 1")
    run.supervisor.start(part)
    first = part.pid
    assert run.supervisor.watch(lambda: part.pid != first, seconds=10)
    assert run.said == [f"sweep ended with code 1; its log is {part.log}.", "sweep is started again."]
    assert control.pid(run.layout.data, "sweep") == part.pid


def test_more_than_three_deaths_a_minute_end_it_with_the_last_lines(run: Run) -> None:
    part = run.part("advance", "echo started >> starts; echo no such table; exit 3")
    run.supervisor.start(part)
    with pytest.raises(StackError, match=r"advance ended with code 3, 4 times within a minute(?s:.)*no such table"):
        run.supervisor.watch(seconds=20)
    assert (run.layout.data / "starts").read_text().count("started") == 4


def test_a_held_part_stays_away_and_its_end_does_not_count(run: Run) -> None:
    """Drills kill parts more often than three times a minute."""
    part = run.part("postgres", "exec sleep 60")
    run.supervisor.start(part)
    drill = (
        f"from console.stack import control\nfor _ in range(6): control.restart({str(run.layout.data)!r}, 'postgres')"
    )
    with subprocess.Popen([sys.executable, "-c", drill], cwd=PROJECT) as drilling:
        assert run.supervisor.watch(lambda: drilling.poll() is not None, seconds=20)
    assert drilling.returncode == 0
    assert run.said.count("postgres was ended by SIGKILL, as asked; kept away until the hold is lifted.") == 6

    hold = run.layout.run / "hold-postgres"
    hold.touch()
    assert part.process is not None
    part.process.kill()
    part.process.wait()
    assert not run.supervisor.watch(lambda: part.ended() is None, seconds=0.5)
    hold.unlink()
    assert run.supervisor.watch(lambda: part.ended() is None, seconds=5)


def test_children_of_a_dead_part_do_not_go_on(run: Run) -> None:
    """A sender that outlived its worker would send what another one is given."""
    part = run.part("advance", "sleep 60 & echo $! > child; wait")
    run.supervisor.start(part)
    file = run.layout.data / "child"
    assert soon(lambda: file.exists() and file.read_text().endswith("\n"))
    child = int(file.read_text())
    assert part.process is not None
    part.process.kill()
    assert run.supervisor.watch(lambda: bool(run.said), seconds=5)
    assert soon(lambda: not alive(child))


def test_a_stubborn_part_is_killed_in_time_with_its_children(run: Run) -> None:
    """Whatever the part thinks of the wish: it is not waited for until it ends by itself."""
    script = "trap '' TERM; (trap '' TERM; sleep 600 & wait; sleep 600) & echo $! > child; sleep 600; sleep 600"
    part = run.part("dispatch", script)
    run.supervisor.start(part)
    file = run.layout.data / "child"
    assert soon(lambda: file.exists() and file.read_text().endswith("\n"))
    run.supervisor.stop()
    assert part.ended() == -signal.SIGKILL
    assert soon(lambda: not alive(int(file.read_text())))


def test_ctrl_c_is_seen_at_the_next_look(run: Run) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        run.supervisor.listen()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Stopped):
            run.supervisor.watch(seconds=5)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_step_that_fails_says_what_it_said(run: Run) -> None:
    with pytest.raises(StackError, match=r"manage.py migrate ended with code 1(?s:.)*the record is wrong"):
        run.supervisor.run(run.part("manage.py migrate", "echo the record is wrong; exit 1"))


def test_a_step_that_hangs_is_ended(run: Run) -> None:
    step = run.part("manage.py migrate", "exec sleep 60")
    with pytest.raises(StackError, match="is not done after 0 s"):
        run.supervisor.run(step, seconds=0.2)
    assert step.ended() is not None


def test_nothing_outlives_a_killed_supervisor(run: Run) -> None:
    """SIGKILL leaves it no time to end anything; the kernel does it."""
    script = (
        "import os, time; from pathlib import Path; from console.stack.process import Part\n"
        f"log = Path({str(run.layout.log / 'web.log')!r})\n"
        "part = Part('web', ('sleep', '60'), dict(os.environ), log, Path('.'))\n"
        "part.start(); print(part.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=PROJECT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert soon(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n")
        parent.kill()
    assert soon(lambda: not alive(child))


def test_a_log_that_grows_too_long_is_set_aside_while_its_process_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing grows without end; what is written after the cut stands in the same file."""
    monkeypatch.setattr("console.stack.process.LOG_MOST", 1000)
    part = run.part("talker", "head -c 2000 /dev/zero | tr '\\0' x; read go < go.fifo; echo after; sleep 60")
    os.mkfifo(run.layout.data / "go.fifo")
    run.supervisor.start(part)
    assert soon(lambda: part.log.stat().st_size > 2000)
    run.supervisor.look()
    aside = part.log.with_name("talker.log.1")
    assert (part.log.stat().st_size, aside.stat().st_size > 2000) == (0, True)
    (run.layout.data / "go.fifo").write_text("go\n")
    assert soon(lambda: part.log.read_bytes() == b"after\n")
    assert part.ended() is None
