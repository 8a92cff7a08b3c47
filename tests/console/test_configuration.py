"""Wrong configuration is named: a missing setting at once, a wrong value by a system check with an id."""

import base64
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from pytest_django.fixtures import Settings

from console import checks
from console.environ import Environ

KEY = base64.b64encode(bytes(32)).decode()


def ids() -> list[str | None]:
    return [problem.id for problem in checks.configuration(None)]


def test_the_test_runs_own_configuration_is_right() -> None:
    assert ids() == []


@pytest.mark.parametrize("values", [{}, {"DATABASE_URL": ""}])
def test_a_missing_setting_is_named_with_its_purpose(values: dict[str, str]) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL is not set: where the record is"):
        Environ(values).required("DATABASE_URL", "where the record is")


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda env: env.flag("X"), "yes"),
        (lambda env: env.integer("X", 30), "-1"),
        (lambda env: env.choice("X", "", "dispatch"), "web"),
    ],
)
def test_a_value_that_a_setting_cannot_take_is_a_problem(read: Any, value: str) -> None:
    env = Environ({"X": value})
    read(env)
    [(identity, sentence)] = env.problems
    assert identity == "console.E001"
    assert value in sentence


@pytest.mark.parametrize(
    ("name", "value", "identity"),
    [
        ("CONFIGURATION_PROBLEMS", [("console.E001", "X is 'y'")], "console.E001"),
        ("RECOURSE_SEAL_KEYS", "", "console.E002"),
        ("RECOURSE_SEAL_KEYS", KEY, "console.E002"),
        ("RECOURSE_SEAL_KEYS", "k1:short", "console.E002"),
        ("RECOURSE_SEAL_KEYS", f"k1:{KEY},k1:{KEY}", "console.E002"),
        ("SECRET_KEY", "secret", "console.E003"),
        ("ALLOWED_HOSTS", ["*"], "console.E005"),
        ("RECOURSE_DATA", Path("/nowhere"), "console.E007"),
        ("RECOURSE_OUTSIDE", Path("/etc/hostname/record.json"), "console.E020"),
        ("REDIS_URL", "http://127.0.0.1", "console.E008"),
        ("RECOURSE_SANDBOX_URL", "127.0.0.1:1", "console.E008"),
    ],
)
def test_each_wrong_value_has_its_check(settings: Settings, name: str, value: Any, identity: str) -> None:
    settings.PLAIN_HTTP = False  # its own check would speak up for some of them
    setattr(settings, name, value)
    assert ids() == [identity]


def test_cookies_without_tls_stay_on_this_machine(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["console.example"]
    assert ids() == ["console.E006"]
    settings.PLAIN_HTTP = False
    assert ids() == []


def test_two_sealing_keys_may_be_named(settings: Settings) -> None:
    settings.RECOURSE_SEAL_KEYS = f"k2:{KEY},k1:{KEY}"
    assert ids() == []


def test_the_secret_itself_is_not_told(settings: Settings) -> None:
    settings.RECOURSE_SEAL_KEYS = "k1:hunter2"
    assert "hunter2" not in str(checks.configuration(None))


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
