"""The scene, for every test of the screens."""

from tests.console.screens.fixtures import scene

__all__ = ["scene"]
