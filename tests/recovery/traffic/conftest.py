"""Each test has a world of its own."""

from tests.recovery.engine.fixtures import w

__all__ = ["w"]
