"""Step-up: who is there, at most five minutes before a heavy action; the pressed action goes on by itself."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from html import unescape

import pytest
from django.test import Client

from runs.models import Person
from tests.console import shell_urls

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.console.shell_urls")]

PASSWORD = "correct horse battery"


@pytest.fixture
def browser() -> Iterator[Client]:
    person = Person.objects.create_user("oncall-a@acme.example", "Oncall A", PASSWORD)
    client = Client(headers={"HX-Request": "true"})
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    shell_urls.done.clear()
    yield client
    shell_urls.done.clear()


def _fields(page: str) -> dict[str, str]:
    return {
        unescape(name): unescape(value)
        for name, value in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page)
    }


def _press(**more: str) -> dict[str, str]:
    return {"action": str(uuid.uuid4()), "version": "4", "reason": 'seen "rf_77" <b>', **more}


def test_the_pressed_action_goes_on_with_all_its_fields(browser: Client) -> None:
    """The step-up carries what was pressed, action id included, and asks nothing twice."""
    pressed = _press()
    asked = browser.post("/heavy/", pressed)
    page = asked.content.decode()
    assert asked.status_code == 403 and "Confirm it is you" in page
    assert "Record: the refund happened" in page and not shell_urls.done
    carried = {k: v for k, v in _fields(page).items() if k != "csrfmiddlewaretoken"}
    assert carried == pressed
    done = browser.post("/heavy/", {**carried, "step_up_password": PASSWORD})
    assert done.status_code == 200 and "Event #23" in done.content.decode()
    assert [str(d["action"]) for d in shell_urls.done] == [pressed["action"]]


def test_signing_in_is_no_step_up_and_a_wrong_password_is_none(browser: Client) -> None:
    """Nothing happens, the same words as at sign-in, the fields stay."""
    pressed = _press()
    asked = browser.post("/heavy/", {**pressed, "step_up_password": "wrong"})
    page = asked.content.decode()
    assert asked.status_code == 403 and "That did not match." in page and "wrong" not in page
    assert _fields(page)["action"] == pressed["action"] and not shell_urls.done


def test_the_version_is_checked_before_and_again_after(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stale page is refused without asking for a password; a change meanwhile is refused after it."""
    stale = browser.post("/heavy/", _press(version="3"))
    assert stale.status_code == 409 and "Confirm it is you" not in stale.content.decode()
    assert "seen &quot;rf_77&quot; &lt;b&gt;" in stale.content.decode()  # the typed reason is kept
    carried = _fields(browser.post("/heavy/", _press()).content.decode())
    monkeypatch.setattr(shell_urls, "VERSION", 5)
    assert browser.post("/heavy/", {**carried, "step_up_password": PASSWORD}).status_code == 409
    assert not shell_urls.done


def test_it_lasts_five_minutes_and_rotates_the_session(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """ASVS 7.2.4 and 7.5.3: a new key at step-up; asked again when it is older than 300 s."""
    before = browser.session.session_key
    assert browser.post("/heavy/", _press(step_up_password=PASSWORD)).status_code == 200
    assert browser.session.session_key != before
    assert browser.post("/heavy/", _press()).status_code == 200
    later = time.time() + 301
    monkeypatch.setattr("console.screens.stepup.time.time", lambda: later)
    assert browser.post("/heavy/", _press()).status_code == 403
    assert len(shell_urls.done) == 2


def test_a_reason_of_white_space_is_no_reason(browser: Client) -> None:
    """Refused before step-up; focus goes to the field."""
    answer = browser.post("/heavy/", _press(reason=" \n "))
    page = answer.content.decode()
    assert answer.status_code == 422 and "Not recorded. Say why: the reason is kept with the decision." in page
    assert re.search(r"<textarea[^>]*autofocus", page)


def test_guessing_at_step_up_is_slowed_down(browser: Client) -> None:
    """The same limit as at sign-in, and no sign-in form in the middle of an action."""
    for _ in range(6):
        answer = browser.post("/heavy/", _press(step_up_password="wrong"))
    assert answer.status_code == 429
    page = answer.content.decode()
    assert "Too many tries from here." in page and 'name="username"' not in page
    assert browser.post("/heavy/", _press(step_up_password=PASSWORD)).status_code == 429
    assert not shell_urls.done
