"""The engine's world, for the tests of what stands around it."""

from tests.recovery.engine.fixtures import w

__all__ = ["w"]
