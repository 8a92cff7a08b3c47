"""/healthz says which part is up, and nothing else."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from console.stack.ports import free_port
from runs.models import Worker
from tests.databases import FreshDatabase, point_at

pytestmark = pytest.mark.filterwarnings("ignore:No directory at")


def beat(pool: str, age: float = 0) -> None:
    seen = timezone.now() - timedelta(seconds=age)
    Worker.objects.create(pool=pool, host="here", pid=1, code="x", started_at=seen, seen_at=seen)


def states(client: Client) -> tuple[int, bool, dict[str, str]]:
    answer = client.get("/healthz")
    body = answer.json()
    return answer.status_code, body["ok"], {name: part["state"] for name, part in body["parts"].items()}


def test_all_up(db: None, client: Client) -> None:
    for pool in ("advance", "dispatch", "sweep"):
        beat(pool)
    status, ok, parts = states(client)
    assert (status, ok) == (200, True)
    assert parts == dict.fromkeys(("postgres", "valkey", "web", "advance", "dispatch", "sweep"), "up")


def test_a_silent_pool_is_down(db: None, client: Client) -> None:
    beat("advance")
    beat("dispatch", age=60)
    beat("sweep", age=10)
    status, ok, parts = states(client)
    assert (status, ok) == (503, False)
    assert (parts["advance"], parts["dispatch"], parts["sweep"]) == ("up", "down", "up")


def test_valkey_and_sandbox_down(db: None, client: Client, settings: Settings) -> None:
    nobody = free_port()
    settings.REDIS_URL = f"redis://127.0.0.1:{nobody}/0"
    settings.RECOURSE_SANDBOX_URL = f"http://127.0.0.1:{nobody}"
    _, ok, parts = states(client)
    assert not ok
    assert (parts["valkey"], parts["sandbox"], parts["postgres"]) == ("down", "down", "up")


def test_without_the_record_the_pools_are_unknown(fresh_db: FreshDatabase, client: Client) -> None:
    """Unknown is not down: the workers may well go on."""
    point_at("no_such_database")
    status, _, parts = states(client)
    assert status == 503
    assert parts["postgres"] == "down"
    assert parts["advance"] == parts["dispatch"] == parts["sweep"] == "unknown"


def test_a_restore_that_holds_sends_back_is_said_and_takes_no_part_down(db: None, client: Client) -> None:
    from runs.models import Restore, Workspace

    for pool in ("advance", "dispatch", "sweep"):
        beat(pool)
    assert client.get("/healthz").json()["sending"] == "up"
    space = Workspace.objects.create(slug="acme-pay", name="Acme Pay", environment="SANDBOX")
    now = timezone.now()
    Restore.objects.create(workspace=space, epoch=2, state="frozen", cause="older_record", backup_at=now, began_at=now)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()["sending"]) == (200, "frozen")


def test_it_is_not_kept_by_any_cache_and_takes_no_post(db: None, client: Client) -> None:
    assert "no-store" in client.get("/healthz")["Cache-Control"]
    assert client.post("/healthz").status_code == 405
