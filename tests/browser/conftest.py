"""One stack a session, one browser for this folder, a context for each person of a test."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser import chromium
from tests.browser.people import People
from tests.browser.world import World
from tests.stack import Stack


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """For this folder only: while Playwright runs, Django's database is out of reach in this process."""
    expect.set_options(timeout=15_000)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium.executable(), args=list(chromium.ARGUMENTS), headless=True
        )
        yield started
        started.close()


@pytest.fixture(scope="package")
def _world(stack: Stack) -> Iterator[World]:
    made = World(stack)
    yield made
    made.close()


@pytest.fixture
def world(_world: World) -> Iterator[World]:
    """The stack with an honest other side; what a test starts and dials ends with it."""
    yield _world
    _world.leave_nothing()


@pytest.fixture
def people(browser: Browser, stack: Stack) -> Iterator[People]:
    everybody = People(browser, stack)
    yield everybody
    everybody.leave()
