"""`manage.py up`: everything that Recourse needs, started and watched from one terminal."""

import os
import subprocess
import sys
import time
from argparse import BooleanOptionalAction
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from console.stack import control, environment, locks, ports
from console.stack.errors import StackError
from console.stack.layout import Layout
from console.stack.processes import Processes
from console.stack.readiness import Readiness
from console.stack.services import Services
from console.stack.supervisor import Stopped, Supervisor


class Command(BaseCommand):
    """Starts the stack and stays until it is asked to end. Exit code 0 after an asked end, 2 after a refusal.

    It runs before there are any settings: it makes them.
    """

    help = "Start everything that Recourse needs, watch it, and end it all with one Ctrl-C."
    requires_system_checks: Sequence[str] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="of the web console on 127.0.0.1")
        parser.add_argument("--data", default="var", help="folder of everything that is kept; made if missing")
        parser.add_argument("--demo", action=BooleanOptionalAction, default=True, help="fill the demo workspaces")
        parser.add_argument("--workers", type=int, default=1, help="processes of the advance pool")
        parser.add_argument("--sandbox-port", type=int, default=0, help="0 takes a free one and keeps it")

    def handle(self, *args: Any, **options: Any) -> None:
        began = float(os.environ.get("RECOURSE_STARTED", time.time()))  # `make run` sets it: seconds since 1970

        def say(line: str) -> None:
            self.stdout.write(f"[{time.time() - began:6.1f} s] {line}")
            self.stdout.flush()

        try:
            self._run(say, **options)
        except StackError as error:
            self.stderr.write(f"Recourse does not run: {error}")
            sys.exit(2)

    def _run(self, say: Callable[[str], None], **options: Any) -> None:
        if options["workers"] < 1:
            raise StackError("--workers takes a number from 1.")
        ports.require_free(options["port"], "--port", 'make run ARGS="--port 8001"')
        if options["sandbox_port"]:
            ports.require_free(options["sandbox_port"], "--sandbox-port", 'make run ARGS="--sandbox-port 8101"')
        layout = Layout.at(options["data"])
        layout.make()
        supervisor = Supervisor(layout, say)
        supervisor.listen()
        with locks.held_by_this_process(layout, say), self._ended_at_last(supervisor, say):
            control.release_all(layout)
            services = Services(layout.data, durable=True, say=say)
            say("Starting PostgreSQL and Valkey.")
            services.start(supervisor.look)
            supervisor.adopt(services.parts)
            self._start(supervisor, services, say, **options)

    def _start(self, supervisor: Supervisor, services: Services, say: Callable[[str], None], **options: Any) -> None:
        address = f"http://{ports.HOST}:{options['port']}"
        sandbox = options["sandbox_port"] or ports.remembered(services.layout, "sandbox")
        settings = environment.build(services, address=address, sandbox=f"http://{ports.HOST}:{sandbox}")
        environment.save(services.layout, settings)
        processes = Processes(services.layout, settings)

        say("Bringing the record up to date.")
        supervisor.run(processes.command("migrate", "--no-input", RECOURSE_STATEMENT_TIMEOUT="0"))
        say("Gathering static files.")
        supervisor.run(processes.command("collectstatic", "--no-input", "--verbosity", "0"))
        parts = processes.all(port=options["port"], sandbox_port=sandbox, workers=options["workers"])
        say(f"Starting {', '.join(part.name for part in parts)}.")
        for part in parts:
            supervisor.start(part)
        self._until_healthy(supervisor, address)
        supervisor.run(processes.command("demo_people"))
        if options["demo"]:
            say("Filling the demo workspaces by running runs.")
            supervisor.run(processes.command("demo_fill"))
        self.stdout.write("")
        self.stdout.write(self._accounts(processes))
        say(f"Ready: {address}/  Ctrl-C ends everything. Logs: {services.layout.log}")
        supervisor.watch()

    def _until_healthy(self, supervisor: Supervisor, address: str) -> None:
        readiness = Readiness(address)
        if not supervisor.watch(readiness.is_complete, seconds=90):
            logs = supervisor.layout.log
            raise StackError(f"Not up after 90 s: {', '.join(readiness.missing)}. Their logs are in {logs}.")

    def _accounts(self, processes: Processes) -> str:
        step = processes.command("accounts")
        done = subprocess.run(
            step.command,
            env=dict(step.environment),
            cwd=step.folder,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        if done.returncode:
            raise StackError(f"The accounts cannot be read:\n{done.stderr.strip()}")
        return done.stdout

    @contextmanager
    def _ended_at_last(self, supervisor: Supervisor, say: Callable[[str], None]) -> Iterator[None]:
        """Whatever happens inside, nothing of the stack is left behind."""
        try:
            yield
        except Stopped:
            say("Ending.")
        finally:
            began = time.monotonic()
            supervisor.stop()
            say(f"Everything has ended, in {time.monotonic() - began:.1f} s.")
