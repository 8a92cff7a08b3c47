"""The scene as a fixture; a test module imports it by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.screens.scene import Scene, stage
from tests.databases import FreshDatabase


@pytest.fixture
def scene(fresh_db: FreshDatabase, settings: Any, tmp_path: Path) -> Iterator[Scene]:
    """A database and a sandbox of this test alone. Passwords are hashed fast: no test here is about them."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with stage(tmp_path) as made:
        yield made
