"""PostgreSQL as the stack makes it: real clusters, each in a folder of its own."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from console.stack import postgres, privilege
from console.stack.errors import StackError
from console.stack.layout import PROJECT
from console.stack.postgres import COMPLETE
from console.stack.services import Services

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="changes owners; needs root")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path that an unprivileged account can reach."""
    path = Path(tempfile.mkdtemp(prefix="rc-"))
    path.chmod(0o755)
    yield path / "d"
    shutil.rmtree(path)


def test_a_cluster_is_private_and_asks_for_a_password(folder: Path) -> None:
    with Services(folder) as services:
        assert stat.S_IMODE(services.layout.postgres.stat().st_mode) == 0o700
        with psycopg.connect(services.database_url) as connection:
            version, user, address = connection.execute(
                "SELECT current_setting('server_version_num')::int, current_user, inet_server_addr()"
            ).fetchone()
            assert (version // 10_000, user, address) == (18, "recourse", None)
        wrong = services.database_url.replace(services.secrets.database_password, "wrong")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(wrong)


def test_a_second_start_finds_its_data(folder: Path) -> None:
    with Services(folder) as services, psycopg.connect(services.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    with Services(folder) as services, psycopg.connect(services.database_url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (7,)


def test_the_role_of_an_installation_can_do_little(folder: Path) -> None:
    """No superuser, no databases, and no way round the triggers that guard the history (invariant 9)."""
    with Services(folder, durable=True) as services, psycopg.connect(services.database_url) as connection:
        connection.autocommit = True
        for statement in ("CREATE DATABASE x", "CREATE ROLE x", "SET session_replication_role = replica"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
        connection.execute("CREATE EXTENSION btree_gin")
        connection.execute("CREATE EXTENSION pg_trgm")


def test_a_half_made_cluster_is_moved_aside_and_said(folder: Path) -> None:
    said: list[str] = []
    services = Services(folder, say=said.append)
    services.layout.postgres.mkdir()
    (services.layout.postgres / "PG_VERSION").write_text("18\n")
    with services:
        assert len(said) == 1
        assert "cut off while making the database" in said[0]
        aside = list(folder.glob("postgres.interrupted-*"))
        assert [path.name for path in aside] == [said[0].split()[-1].rstrip(".")]
        assert (aside[0] / "PG_VERSION").exists()  # kept, not deleted


@pytest.mark.parametrize("lost", ["secrets/seal-keys", "secrets/postgres-superuser", "postgres/PG_VERSION"])
def test_what_belongs_to_the_cluster_and_is_gone_is_named_and_not_made_anew(folder: Path, lost: str) -> None:
    """A new seal key beside an old database would make every checkpoint unreadable without a word."""
    with Services(folder):
        pass
    (folder / lost).unlink()
    with pytest.raises(StackError, match=Path(lost).name), Services(folder):
        pass
    assert not (folder / lost).exists()


def test_a_cluster_of_another_version_is_refused(folder: Path) -> None:
    services = Services(folder)
    services.layout.postgres.mkdir(mode=0o700)
    (services.layout.postgres / "PG_VERSION").write_text("17\n")
    (services.layout.postgres / COMPLETE).touch()
    with pytest.raises(StackError, match="was made by PostgreSQL 17; this is 18"):
        services.start()


def test_a_path_too_long_for_a_socket_uses_the_loopback_address(folder: Path) -> None:
    said: list[str] = []
    with Services(folder / ("x" * 110), say=said.append) as services:
        assert "too long for a socket" in said[0]
        with psycopg.connect(services.database_url) as connection:
            assert connection.execute("SELECT host(inet_server_addr())").fetchone() == ("127.0.0.1",)


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    with Services(folder):
        pass
    (folder / "postgres" / "global" / "pg_control").unlink()
    services = Services(folder)
    with pytest.raises(StackError, match=r"postgres ended with code \d+ while starting:(?s:.)*pg_control"):
        services.start()
    assert services.parts == []


@AS_ROOT
def test_refused_user_namespaces_lead_to_an_unprivileged_account(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is made to refuse; the rest is real, and so is the way back."""
    monkeypatch.setattr(privilege, "user_namespaces_work", lambda: False)
    with Services(folder) as services:
        owner = services.layout.postgres.stat().st_uid
        assert owner != 0
        process = services.parts[0].process
        assert process is not None
        assert Path(f"/proc/{process.pid}").stat().st_uid == owner
        assert stat.S_IMODE(services.layout.secrets.stat().st_mode) == 0o700
    monkeypatch.undo()
    if not privilege.user_namespaces_work():
        pytest.skip("this machine refuses user namespaces, so there is no way back to try")
    with Services(folder) as services:
        assert services.layout.postgres.stat().st_uid == 0


@AS_ROOT
@pytest.mark.parametrize("refused", [False, True], ids=["user namespace", "unprivileged account"])
def test_the_servers_end_with_a_killed_supervisor(folder: Path, refused: bool) -> None:
    """Each way of giving root's rights up could make the kernel forget the parent-death signal."""
    script = (
        "import time; from console.stack import privilege; from console.stack.services import Services\n"
        + ("privilege.user_namespaces_work = lambda: False\n" if refused else "")
        + f"services = Services({str(folder)!r}); services.start()\n"
        "print(*[part.pid for part in services.parts], flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = parent.stdout.readline().split()
        parent.kill()
    assert len(pids) == 2
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
        assert time.monotonic() < until, "a server outlived its supervisor"
        time.sleep(0.05)


@AS_ROOT
def test_refused_user_namespaces_and_a_closed_path_name_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privilege, "user_namespaces_work", lambda: False)
    folder.parent.chmod(0o700)
    with pytest.raises(StackError, match=f"refuses user namespaces.*may not walk through {folder.parent}"):
        Services(folder).start()


@AS_ROOT
def test_a_machine_without_an_ordinary_account_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwall", lambda: [pwd.getpwnam("root")])
    with pytest.raises(StackError, match="knows no other account"):
        Services(folder).start()


def test_the_binaries_are_the_wheels() -> None:
    assert all((postgres.binaries() / name).is_file() for name in ("initdb", "postgres"))
