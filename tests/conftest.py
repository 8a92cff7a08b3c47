"""One throwaway PostgreSQL and Valkey for the whole test run, started by the first test that needs them.

`db` (pytest-django) rolls each test back. A test that needs real commits, a second connection or a process
takes `fresh_db`: a database of its own, cloned from the migrated template. Django's `transactional_db` cannot
work here: it empties tables, and the history refuses that.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.stack import environment
from console.stack.services import Services

# Short, since a socket's path has 107 bytes; PostgreSQL's own account may have to walk through it.
_folder = Path(tempfile.mkdtemp(prefix="rc-"))
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
_services = Services(_folder)
_settings = environment.build(_services, address="http://testserver", sandbox="http://127.0.0.1:1")
# Only what a test starts has a sandbox; tests that need its address set it.
del _settings["RECOURSE_SANDBOX_URL"]
# Each test's database would look like an older one to what the test before last saw.
del _settings["RECOURSE_OUTSIDE"]
for _name in [name for name in os.environ if name.startswith("RECOURSE_")]:
    del os.environ[_name]  # the caller's own settings would change what is tested
os.environ.update(_settings)

import django  # noqa: E402

django.setup()  # before pytest-django would: conftest files below import models

from tests.databases import FreshDatabase, clone, create_template, fresh_database  # noqa: E402
from tests.stack import Stack, stack  # noqa: E402, F401

__all__ = ["FreshDatabase", "Stack"]


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    """PostgreSQL and Valkey, running."""
    with _services:
        yield _services


@pytest.fixture(scope="session")
def static_files(services: Services) -> None:
    """Gathered once, so that templates find their files by the same manifest as in production."""
    del services
    from django.core.management import call_command

    call_command("collectstatic", interactive=False, verbosity=0)


@pytest.fixture(scope="session")
def django_db_setup(
    services: Services,
    static_files: None,
    django_test_environment: None,
    django_db_blocker: pytest.FixtureRequest,
) -> None:
    """In pytest-django's place: the migrated template, and its clone for the tests that are rolled back."""
    del static_files, django_test_environment
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        create_template(services)
        clone("recourse_rollback")


@pytest.fixture
def fresh_db(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: pytest.FixtureRequest
) -> Iterator[FreshDatabase]:
    """A database of this test alone, as Django's connection and as DATABASE_URL for processes it starts."""
    del django_db_setup
    if {"db", "transactional_db"} & set(request.fixturenames):
        raise pytest.UsageError("fresh_db is a database of its own; a test takes either db or fresh_db")
    with django_db_blocker.unblock(), fresh_database(_services) as database:  # type: ignore[attr-defined]
        yield database


@pytest.fixture
def valkey(services: Services) -> Iterator[str]:
    """The URL of Valkey, emptied before the test."""
    import redis

    with redis.Redis.from_url(services.redis_url) as client:
        client.flushall()
    yield services.redis_url
