"""Databases of the tests: one migrated template, and clones of it."""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from django.core.management import call_command
from django.db import connections
from psycopg import sql

from console.stack.services import Services

TEMPLATE = "recourse_template"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class FreshDatabase:
    """A database of one test. `url` is for other processes and connections."""

    name: str
    url: str

    def connect(self, *, autocommit: bool = True) -> psycopg.Connection:
        """Another real connection, for races. Close it before the test ends."""
        return psycopg.connect(self.url, autocommit=autocommit)


def create_template(services: Services) -> None:
    """Migrate the template, then leave it without connections, so that it can be cloned."""
    _run(services, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    point_at(TEMPLATE)
    call_command("migrate", interactive=False, verbosity=0)
    point_at(services.postgres.url().rpartition("/")[2].partition("?")[0])


def clone(name: str, services: Services | None = None) -> None:
    """A new database from the template; Django's connection is pointed at it."""
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(TEMPLATE))
    if services is None:
        with connections["default"].cursor() as cursor:
            cursor.execute(statement)
    else:
        _run(services, statement)
    point_at(name)


def point_at(name: str) -> None:
    """Let Django's connection, in this thread and in those to come, use another database of the cluster."""
    connections.close_all()
    connections.settings["default"]["NAME"] = name
    connections["default"].settings_dict["NAME"] = name


@contextmanager
def fresh_database(services: Services) -> Iterator[FreshDatabase]:
    """A clone of its own; dropped afterwards with whatever is still connected to it."""
    name = f"fresh_{next(_numbers)}"
    before = connections["default"].settings_dict["NAME"]
    environment = os.environ["DATABASE_URL"]
    clone(name, services)
    url = services.postgres.url(name)
    os.environ["DATABASE_URL"] = url
    try:
        yield FreshDatabase(name, url)
    finally:
        os.environ["DATABASE_URL"] = environment
        point_at(before)
        _drop(services, name)


def _drop(services: Services, name: str) -> None:
    """Drop it with whatever is connected. The server's own autovacuum is no role's to end; it is gone in a moment."""
    until = time.monotonic() + 30
    while True:
        try:
            return _run(services, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _run(services: Services, statement: sql.Composed) -> None:
    with psycopg.connect(services.database_url, autocommit=True) as connection:
        connection.execute(statement)
