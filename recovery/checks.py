"""System checks: each problem of a declaration as a Django check with a stable id (recovery.E001 to E012,
W001)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning, register
from django.utils import timezone

from recovery.contract import registry

ENDS_SOON = timedelta(days=30)


def contract_checks(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """One error for each problem of the contracts; a warning for each promise that ends soon or has ended."""
    labels = None if app_configs is None else {config.label for config in app_configs}
    messages: list[CheckMessage] = [
        Error(str(problem), id=problem.id) for problem in registry.problems() if labels is None or problem.app in labels
    ]
    soon = (timezone.now() + ENDS_SOON).date()
    for contract in registry.effects():
        until = getattr(contract.promise, "until", None)
        if until is not None and until <= soon:
            text = f"{contract.operation} v{contract.version}: promise: ends on {until.isoformat()}"
            hint = "After it nothing is sent again by itself. Ask the dependency and write the next version."
            messages.append(Warning(text, hint=hint, id="recovery.W001"))
    return messages


def register_checks() -> None:
    """Register once; called when the app is ready."""
    register(contract_checks, "recovery")
