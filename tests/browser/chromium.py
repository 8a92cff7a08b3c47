"""The browser of the tests: Chromium of this machine, found by the names that `.ci/chromium` looks for."""

import shutil
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Started as root in a container, and without a word to anybody outside."""


def executable() -> str:
    """Its path. Raises FileNotFoundError, which says what to install."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise FileNotFoundError("The browser tests need Chromium. Debian: apt-get install chromium")
