"""The list of runs: found by id, reference and filter; counted with its time; it never moves by itself."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Run
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text

RUNS = "/w/acme-pay/runs/"


def _titles(page: str) -> list[str]:
    return re.findall(r"(Cancel order \S+|Post a notice to \S+) \S+ v1", page)


def test_an_empty_list_says_what_would_fill_it(scene: Scene) -> None:
    """Empty, filtered empty and loading look different."""
    assert "No runs yet. They start over the API." in text(scene.client("a").get(RUNS))
    scene.notice()
    assert "Nothing matches Completed. 1 without it. Clear filter" in text(
        scene.client("a").get(RUNS + "?state=completed")
    )


def test_a_row_tells_state_wait_effects_and_times(scene: Scene) -> None:
    """Newest first; the number that match with the time it was counted."""
    effect, approval = scene.unknown(), scene.asked()
    page = text(scene.client("a").get(RUNS))
    assert re.search(r"2 match, counted \d\d:\d\d:\d\d \(exact\), newest first", page)
    assert _titles(page) == [scene.run_of(approval.effect).title, scene.run_of(effect).title]
    assert re.search(r"State: Waiting: outcome unknown Cancel order .*? proof from cards-eu, for \d+ s 1 unknown", page)
    assert re.search(r"State: Waiting: signatures .*? signatures, for \d+ s 1 to sign", page)


def test_search_by_reference_whole_id_and_last_digits(scene: Scene) -> None:
    """Across lines and phones people read the last eight digits aloud."""
    effect = scene.unknown()
    scene.notice()
    run, a = scene.run_of(effect), scene.client("a")
    tail = run.pk.hex[-8:]
    for q in (
        run.references[0],
        run.references[1],
        str(run.pk),
        f"{tail[:4]}-{tail[4:]}",
        f"type:orders.cancel {tail}",
    ):
        assert _titles(text(a.get(RUNS, {"q": q}))) == [run.title], q
    assert "Nothing matches A-none. 2 without it." in text(a.get(RUNS, {"q": "A-none"}))


def test_filters_stand_in_the_address_and_in_the_search_box(scene: Scene) -> None:
    """state, type and what it waits on, in any combination."""
    scene.unknown()
    scene.asked()
    a = scene.client("a")
    assert len(_titles(text(a.get(RUNS + "?state=waiting&on=unknown&on=approval")))) == 2
    assert len(_titles(text(a.get(RUNS + "?on=unknown")))) == 1
    assert len(_titles(text(a.get(RUNS, {"q": "state:waiting waiting on:approval"})))) == 1
    assert _titles(text(a.get(RUNS + "?type=orders.cancel&state=failed"))) == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"stat": "waiting"}, "No filter called stat. Did you mean state?"),
        ({"q": "stte:waiting"}, "No filter called stte. Did you mean state?"),
        ({"q": "zzz:1"}, "No filter called zzz."),
        ({"state": "wating"}, "No state called wating. Did you mean waiting?"),
        ({"type": "orders.cancl"}, "No type called orders.cancl. Did you mean orders.cancel?"),
    ],
)
def test_a_filter_that_is_not_known_is_named(scene: Scene, query: dict[str, str], said: str) -> None:
    """Nothing is listed under a filter that was not understood: it would be taken for the answer."""
    scene.unknown()
    page = text(scene.client("a").get(RUNS, query))
    assert said in page and "Search without it" in page and not _titles(page)


def test_pages_by_key_and_counts_with_a_cap(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer and Older; more than the cap is "10,000+" and said to be a lower bound."""
    monkeypatch.setattr("console.screens.runs.PER_PAGE", 2)
    monkeypatch.setattr("runs.queries.lists.MOST_COUNTED", 2)
    monkeypatch.setattr("runs.queries.paging.MOST_COUNTED", 2)
    for _run in range(3):
        scene.notice()
    a = scene.client("a")
    first = a.get(RUNS)
    assert re.search(r"10,000\+ match, counted \S+ \(at least\)", text(first))
    older = re.search(r'rel="next" href="([^"]+)"', first.content.decode())[1].replace("&amp;", "&")
    second = a.get(RUNS + older)
    assert len(_titles(text(first))) == 2 and len(_titles(text(second))) == 1
    newer = re.search(r'rel="prev" href="([^"]+)"', second.content.decode())[1].replace("&amp;", "&")
    assert _titles(text(a.get(RUNS + newer))) == _titles(text(first))
    assert a.get(RUNS + "?cursor=nonsense").status_code == 400


def test_newcomers_are_counted_and_not_inserted(scene: Scene) -> None:
    """The list never refetches itself; a row does."""
    scene.notice()
    page = scene.client("a").get(RUNS).content.decode()
    news = re.search(r'hx-get="(/w/acme-pay/runs/news/[^"]*)"', page)[1].replace("&amp;", "&")
    htmx = scene.client("a", htmx=True)
    assert text(htmx.get(news)) == ""
    scene.notice()
    assert text(htmx.get(news)) == "1 new - show"
    effect = scene.unknown()
    row = htmx.get(f"/runs/{effect.run_id}/row/")
    assert row.content.decode().lstrip().startswith("<tr") and "Waiting: outcome unknown" in text(row)


def test_nothing_crosses_a_workspace(scene: Scene) -> None:
    """Invariant 14: list, count, search, row, news."""
    effect = scene.unknown()
    e = scene.client("e")
    assert e.get(RUNS).status_code == 404 and e.get(RUNS + "news/").status_code == 404
    assert e.get(f"/runs/{effect.run_id}/row/").status_code == 404
    assert "Nothing matches" in text(e.get("/w/other-pay/runs/", {"q": str(effect.run_id)}))


def test_the_list_costs_the_same_however_much_it_shows(scene: Scene) -> None:
    """No query a row."""
    counts = []
    for _more in range(2):
        scene.unknown()
        scene.asked()
        client = scene.client("a")
        with CaptureQueriesContext(connection) as seen:
            client.get(RUNS)
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 20, counts


def test_an_action_that_was_recorded_is_found_again(scene: Scene) -> None:
    """For a lost reply (D7): recorded once, by this person; nothing recorded and somebody else's look the same."""
    effect, action = scene.unknown(), uuid4()
    scene.client("a", htmx=True).post(f"/runs/{effect.run_id}/look/", {"action": str(action)})
    page = scene.client("a").get(f"/actions/{action}/")
    assert re.search(r"Recorded at \d\d:\d\d:\d\d: the run was asked to be looked at again\. Event #\d+\.", text(page))
    for letter, id in (("b", action), ("e", action), ("a", uuid4())):
        answer = scene.client(letter).get(f"/actions/{id}/")
        assert answer.status_code == 404 and "Nothing of yours is recorded under this id so far." in text(answer)
    assert Run.objects.count() == 1
