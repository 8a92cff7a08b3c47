"""What the stack keeps in its data folder: secrets, lock, ports, settings."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from console.stack import environment, locks, ports, privilege
from console.stack.errors import StackError
from console.stack.layout import PROJECT, Layout, write_private
from console.stack.secrets import Secrets


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout.at(tmp_path / "data")
    layout.make()
    return layout


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_made_once_and_only_we_read_them(layout: Layout) -> None:
    secrets = Secrets(layout.secrets)
    first = [
        secrets.django_key,
        secrets.seal_keys,
        secrets.database_password,
        secrets.account_password("a@x.example"),
    ]
    again = Secrets(layout.secrets)
    second = [
        again.django_key,
        again.seal_keys,
        again.database_password,
        again.account_password("a@x.example"),
    ]
    assert first == second
    assert len(set(first)) == len(first)
    assert all(mode(path) == 0o600 for path in layout.secrets.iterdir())
    assert mode(layout.secrets) == 0o700


def test_two_installations_have_different_passwords(layout: Layout, tmp_path: Path) -> None:
    other = Layout.at(tmp_path / "other")
    other.make()
    email = "oncall-a@acme.example"
    assert Secrets(layout.secrets).account_password(email) != Secrets(other.secrets).account_password(email)


def test_processes_that_ask_at_once_get_one_secret(layout: Layout) -> None:
    """The second maker waits for the first and reads what it made."""
    ask = f"from console.stack.secrets import *; print(Secrets(Path({str(layout.secrets)!r})).django_key)"
    asking = [
        subprocess.Popen([sys.executable, "-c", ask], cwd=PROJECT, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert len({process.communicate()[0] for process in asking}) == 1


def test_a_private_file_is_replaced_whole(layout: Layout) -> None:
    path = layout.data / "x"
    write_private(path, "first")
    with path.open() as reader:
        write_private(path, "second")
        assert reader.read() == "first"  # a reader sees one or the other, never a mixture
    assert path.read_text() == "second"
    assert [p.name for p in layout.data.iterdir() if p.name.startswith(".x")] == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StackError, match=r"The data folder .*file/data cannot be used"):
        Layout.at(tmp_path / "file" / "data").make()


def test_a_folder_without_rights_is_named(tmp_path: Path) -> None:
    """Root may write everywhere, so as root it is tried inside a user namespace, where it may not."""
    tmp_path.chmod(0o500)
    without_rights = ["unshare", "-U"] if os.geteuid() == 0 else []
    if without_rights and not privilege.user_namespaces_work():
        pytest.skip("runs as root on a machine that refuses user namespaces: nothing is forbidden to it")
    refused = subprocess.run(
        [*without_rights, sys.executable, str(PROJECT / "manage.py"), "up", "--data", str(tmp_path / "d")]
        + ["--port", str(ports.free_port())],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert refused.returncode == 2
    assert f"The data folder {tmp_path / 'd'} cannot be used: Permission denied" in refused.stderr
    assert "Give this account the right to write there" in refused.stderr


def test_a_second_holder_is_refused_by_the_pid_of_the_first(layout: Layout) -> None:
    hold = (
        "import sys; from console.stack import locks; from console.stack.layout import Layout\n"
        f"with locks.held_by_this_process(Layout.at({str(layout.data)!r}), print):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(StackError, match=f"process {holder.pid} holds its lock"),
            locks.held_by_this_process(layout, print),
        ):
            pass
        holder.kill()
    said: list[str] = []
    with locks.held_by_this_process(layout, said.append):
        assert said == [f"Took over the lock of process {holder.pid}, which did not end in order."]
    with locks.held_by_this_process(layout, said.append):
        assert len(said) == 1  # an orderly end leaves nothing to take over


def test_a_port_in_use_is_named_with_a_way_out() -> None:
    import socket

    with socket.socket() as listener:
        listener.bind((ports.HOST, 0))
        listener.listen()
        taken = listener.getsockname()[1]
        with pytest.raises(StackError, match=rf"Port {taken} on 127\.0\.0\.1 is in use.*--port 9"):
            ports.require_free(taken, "--port", "--port 9")
    ports.require_free(taken, "--port", "--port 9")


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(StackError, match="is no port"):
        ports.require_free(port, "--port", "--port 9")


def test_the_sandbox_keeps_its_port(layout: Layout) -> None:
    """Its address is in the record: a moving port would orphan what is there."""
    assert ports.remembered(layout, "sandbox") == ports.remembered(layout, "sandbox")


def test_children_get_settings_and_no_stray_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/x")
    monkeypatch.setenv("SECRET_THING", "x")
    monkeypatch.setenv("RECOURSE_FAILPOINTS", "a")
    child = environment.for_child({"DATABASE_URL": "postgresql://here/y"}, RECOURSE_PART="web")
    assert child["DATABASE_URL"] == "postgresql://here/y"
    assert child["RECOURSE_FAILPOINTS"] == "a"
    assert child["RECOURSE_PART"] == "web"
    assert "SECRET_THING" not in child


def test_settings_are_left_for_other_commands_and_only_for_us(layout: Layout) -> None:
    environment.save(layout, {"SECRET_KEY": "x"})
    assert environment.load(layout.data) == {"SECRET_KEY": "x"}
    assert mode(layout.environment) == 0o600
    assert environment.load(layout.data / "none") == {}
