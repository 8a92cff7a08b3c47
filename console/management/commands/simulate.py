"""`manage.py simulate`: random runs, people, faults and clocks by seeds, in a throw-away database of its own."""

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandParser
from psycopg import sql

from console.stack import environment
from console.stack.errors import StackError
from console.stack.layout import PROJECT
from console.stack.process import dies_with_parent
from console.stack.processes import Processes
from console.stack.services import Services
from recovery.simulation.report import Report

EVERY = 100
"""Seeds after which the command says how far it is."""


class Command(BaseCommand):
    """Starts a PostgreSQL of its own, plays the seeds on each core, ends it. Exit code 1 when an invariant broke.

    It runs before there are any settings: it makes them.
    """

    help = "Play seeds: random runs, people, faults, workers and clocks; check the invariants after every move."
    requires_system_checks: Sequence[str] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seeds", type=int, default=100, help="how many")
        parser.add_argument("--first", type=int, default=1, help="the first of them")
        parser.add_argument("--seed", type=int, help="only this one; it replays exactly")
        parser.add_argument("--trace", action="store_true", help="show every move")
        parser.add_argument("--json", action="store_true", help="the report as one JSON object")
        parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="one for each core by default")
        parser.add_argument(
            "--although-configured",
            action="store_true",
            help="run although DATABASE_URL is set; that database is never touched",
        )
        parser.add_argument("--break", dest="guard", default="", help=argparse.SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        if "DATABASE_URL" in os.environ and not options["although_configured"]:
            self.stderr.write(
                "DATABASE_URL is set. The simulation makes a database of its own and never touches that one;"
                " say --although-configured if you mean it."
            )
            sys.exit(2)
        if options["seed"] is not None:
            options |= {"first": options["seed"], "seeds": 1}
        if options["seeds"] < 1 or options["processes"] < 1:
            self.stderr.write("--seeds and --processes take numbers from 1.")
            sys.exit(2)
        try:
            with tempfile.TemporaryDirectory(prefix="rc-", ignore_cleanup_errors=True) as folder:
                violated = self._run(Path(folder), options)
        except StackError as error:
            self.stderr.write(f"The simulation does not run: {error}")
            sys.exit(2)
        if violated:
            sys.exit(1)

    def _run(self, folder: Path, options: dict[str, Any]) -> bool:
        services = Services(folder)
        settings = environment.build(services, address="http://127.0.0.1:1", sandbox="http://127.0.0.1:1")
        processes = min(options["processes"], options["seeds"])
        with services:
            _done(Processes(services.layout, settings).command("migrate", "--no-input", "--verbosity", "0"))
            databases = _clones(services, processes)
            report, began = Report(), time.monotonic()
            players = [
                _player(settings, url, options, first=options["first"] + n, step=processes)
                for n, url in enumerate(databases)
            ]
            try:
                for told in _told(players):
                    report.add(told)
                    self._show(told, options)
                    if report.seeds % EVERY == 0:
                        self.stderr.write(f"{report.seeds} of {options['seeds']} seeds, {report.so_far()}")
            finally:
                for player in players:
                    player.kill()
            report.seconds = time.monotonic() - began
        self.stdout.write(json.dumps(report.as_json(), indent=2) if options["json"] else report.words())
        return bool(report.violations)

    def _show(self, told: dict[str, Any], options: dict[str, Any]) -> None:
        """What is worth a line before the end; on stderr, so that the report stays whole."""
        for line in told.get("trace", ()):
            self.stderr.write(line)
        if told["violations"] and not options["trace"]:
            broken = ", ".join(sorted({str(one["invariant"]) for one in told["violations"]}))
            self.stderr.write(
                f"seed {told['seed']} broke {broken}; again: manage.py simulate --seed {told['seed']} --trace"
            )


def _done(part: Any) -> None:
    """Carry a command out. Raises StackError with what it said."""
    done = subprocess.run(
        part.command, env=dict(part.environment), cwd=part.folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise StackError(f"{part.name} ended with {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())


def _clones(services: Services, n: int) -> list[str]:
    """Addresses of ``n`` copies of the migrated database."""
    names = [f"simulated_{i}" for i in range(n)]
    with psycopg.connect(services.postgres.url("postgres"), autocommit=True) as connection:
        for name in names:
            copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(copy.format(sql.Identifier(name), sql.Identifier("recourse")))
    return [services.postgres.url(name) for name in names]


def _player(
    settings: dict[str, str], url: str, options: dict[str, Any], *, first: int, step: int
) -> "subprocess.Popen[str]":
    """A process that plays every ``step``-th seed from ``first`` on."""
    count = options["seeds"] - (first - options["first"])
    command = [
        *dies_with_parent(signal.SIGKILL),
        *(sys.executable, "-m", "recovery.simulation", "--first", str(first), "--seeds", str(count)),
        *("--step", str(step), "--break", options["guard"]),
        *(["--trace"] if options["trace"] else []),
    ]
    whole = environment.for_child(settings, DATABASE_URL=url, RECOURSE_PART="simulation")
    return subprocess.Popen(command, env=whole, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def _told(players: "Sequence[subprocess.Popen[str]]") -> Iterator[dict[str, Any]]:
    """The lines of all players as they come. Raises StackError when one ends badly."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read(player: "subprocess.Popen[str]") -> None:
        assert player.stdout is not None
        for line in player.stdout:
            lines.put(line)
        lines.put(None)

    for player in players:
        threading.Thread(target=read, args=(player,), daemon=True).start()
    going = len(players)
    while going:
        line = lines.get()
        if line is None:
            going -= 1
        else:
            yield json.loads(line)
    for player in players:
        if player.wait():
            raise StackError(f"a player ended with {player.returncode}; what it said stands above")
