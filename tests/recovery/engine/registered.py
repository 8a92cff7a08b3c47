"""The tests' own contracts in the registry, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recovery.contract import registry
from tests.recovery.engine import computes, contracts, family


@contextmanager
def registered() -> Iterator[None]:
    """Register the tests' contracts, and leave the registry afterwards as it was."""
    kept = registry._registry
    registry.discover()
    before = [
        dict(kept._effects),
        dict(kept._run_types),
        dict(kept._computes),
        list(kept._problems),
        dict(kept._found_in),
    ]
    for module in (contracts, computes, family):
        registry.register_module(module, "tests")
    assert kept._problems == before[3], f"the tests' own contracts are wrong: {kept._problems}"
    try:
        yield
    finally:
        kept._effects, kept._run_types, kept._computes, kept._problems, kept._found_in = before  # type: ignore[assignment]
