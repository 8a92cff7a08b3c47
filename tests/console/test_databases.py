"""The test databases themselves: real commits that no other test sees."""

import pytest
from django.db import connection, transaction

from runs.models import Workspace
from tests.databases import FreshDatabase

FOUND: list[str] = []


@pytest.mark.parametrize("turn", [1, 2])
def test_a_fresh_database_is_empty_and_commits_for_real(fresh_db: FreshDatabase, turn: int) -> None:
    assert fresh_db.name not in FOUND
    FOUND.append(fresh_db.name)
    assert not Workspace.objects.exists()
    with transaction.atomic():
        Workspace.objects.create(slug="acme-pay", name="Acme")
    with fresh_db.connect() as other:
        assert other.execute("SELECT slug FROM runs_workspace").fetchone() == ("acme-pay",)


def test_a_rolled_back_test_sees_none_of_it(db: None) -> None:
    assert not Workspace.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == ("recourse_rollback",)


def test_a_fresh_database_is_gone_afterwards(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_database WHERE datname LIKE 'fresh_%%'", [])
        assert cursor.fetchone() == (0,)


def test_its_statements_end_in_time(fresh_db: FreshDatabase) -> None:
    """A forgotten transaction or statement must not hold rows for ever."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("30s",)
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("30s",)
