"""The shell: sign-in, settings of a person, pages for what went wrong."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.test.client import Client as DjangoClient

from runs.models import Person
from tests.console import shell_urls

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.console.shell_urls")]

PASSWORD = "correct horse battery"


@pytest.fixture
def person(db: None) -> Person:
    return Person.objects.create_user("oncall-a@acme.example", "Oncall A", PASSWORD, zone="Asia/Shanghai")


@pytest.fixture
def browser(person: Person) -> DjangoClient:
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client


def _sign_in(client: DjangoClient, email: str, password: str, **more: str) -> object:
    return client.post("/sign-in/", {"username": email, "password": password, **more})


def test_signing_in_leads_to_the_inbox(person: Person) -> None:
    """The plain path; the address is taken in any case."""
    answer = _sign_in(Client(), "Oncall-A@acme.example", PASSWORD)
    assert (answer.status_code, answer["Location"]) == (302, "/inbox/")


def test_unknown_wrong_and_disabled_get_the_same_answer(person: Person) -> None:
    """No page tells which accounts exist (ASVS 6.3.8)."""
    Person.objects.create_user("gone@acme.example", "Gone", PASSWORD, is_active=False)
    pages = []
    for email, password in [
        (person.email, "wrong"),
        ("nobody@acme.example", PASSWORD),
        ("gone@acme.example", PASSWORD),
    ]:
        answer = _sign_in(Client(), email, password)
        assert answer.status_code == 422
        text = re.sub(r'name="csrfmiddlewaretoken" value="[^"]+"|"X-CSRFToken":"[^"]+"', "", answer.content.decode())
        pages.append(re.sub(r"datetime=\S+|[0-9a-f]{12}", "", text.replace(email, "E")))
    assert "That did not match." in pages[0]
    assert pages[0] == pages[1] == pages[2]


def test_a_deep_link_is_not_named_and_followed_after(person: Person) -> None:
    """The page says that it goes on, not where to; another host is never followed (trap 10)."""
    page = Client().get("/account/", follow=True)
    assert "You will go on to the page you opened." in page.content.decode()
    client = Client()
    assert _sign_in(client, person.email, PASSWORD, next="/account/")["Location"] == "/account/"
    assert _sign_in(Client(), person.email, PASSWORD, next="https://evil.example/")["Location"] == "/inbox/"
    assert "go on to" not in Client().get("/sign-in/").content.decode()


def test_guessing_is_slowed_down_and_says_until_when(person: Person) -> None:
    """After five tries from one address for one name, the right password waits too; unknown names alike."""
    for email in (person.email, "nobody@acme.example"):
        client = Client()
        for _ in range(5):
            answer = _sign_in(client, email, "wrong")
        assert answer.status_code == 429
        assert "Too many tries from here. Try again in 15 min." in answer.content.decode()
        assert _sign_in(client, email, PASSWORD).status_code == 429


def test_a_part_asked_for_while_signed_out_does_not_touch_the_form(person: Person) -> None:
    """401 with the sign-in form, aimed at its own slot: what was typed elsewhere is kept."""
    answer = Client().get("/account/", headers={"HX-Request": "true"})
    assert answer.status_code == 401
    assert answer["HX-Retarget"] == "#sign-in-slot"
    assert "Sign in here; what you typed is kept." in answer.content.decode()


def test_signing_in_in_place_gives_the_new_token(person: Person) -> None:
    """The page's forms must carry the token of the new session."""
    client = Client(enforce_csrf_checks=True)
    page = client.get("/sign-in/").content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
    answer = client.post(
        "/sign-in/",
        {"username": person.email, "password": PASSWORD, "csrfmiddlewaretoken": token},
        headers={"HX-Request": "true"},
    )
    assert answer.status_code == 200 and "You are signed in again" in answer.content.decode()
    assert "recourse:signed-in" in answer["HX-Trigger"] and str(person.pk) in answer["HX-Trigger"]


def test_signing_out_takes_a_post(browser: DjangoClient) -> None:
    """No state changes on GET (ASVS 3.5.3)."""
    assert browser.get("/sign-out/").status_code == 405
    assert browser.post("/sign-out/")["Location"] == "/sign-in/"
    assert browser.get("/account/").status_code == 302


def test_settings_of_a_person_hold_on_every_page(browser: DjangoClient, person: Person) -> None:
    """Zone, theme and keys: saved, shown, and only for this person."""
    answer = browser.post("/account/", {"language": "en", "zone": "Europe/Berlin", "theme": "dark"})
    assert answer.status_code == 302
    page = browser.get("/account/").content.decode()
    assert 'data-theme="dark"' in page and 'data-zone="Europe/Berlin"' in page and 'data-keys="off"' in page
    assert browser.post("/account/", {"language": "en", "zone": "Mars", "theme": "dark"}).status_code == 422
    person.refresh_from_db()
    assert person.zone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (403, "You can see this but not do it."),
        (404, "Nothing here that you can see."),
        (500, "Recourse could not answer."),
        (503, "Recourse cannot reach its record."),
    ],
)
def test_what_went_wrong_has_a_page_that_tells_nothing(browser: DjangoClient, how: int, words: str) -> None:
    """The same words for foreign and missing, no detail of the cause, and the request's id."""
    browser.raise_request_exception = False
    answer = browser.get(f"/broken/{how}/")
    page = answer.content.decode()
    assert answer.status_code == how and words in page
    assert "other-pay" not in page and "secret" not in page and "closed" not in page
    assert answer["Request-Id"] in page


def test_pages_are_kept_out_of_caches_and_allow_no_inline_script(browser: DjangoClient) -> None:
    """Traps 8 and 9."""
    answer = browser.get("/account/")
    assert "no-store" in answer["Cache-Control"]
    policy = answer["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy


def test_a_preview_is_a_page_and_a_part(browser: DjangoClient) -> None:
    """An action works without JavaScript; htmx gets the inside alone."""
    page, part = browser.get("/heavy/"), browser.get("/heavy/", headers={"HX-Request": "true"})
    for answer in (page, part):
        assert "Record that this refund happened" in answer.content.decode()
    assert "<html" in page.content.decode() and "<html" not in part.content.decode()
    assert shell_urls.done == []
