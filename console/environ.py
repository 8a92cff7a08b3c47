"""Reads settings from the environment. What is missing is named, with its purpose; nothing is made up."""

import os
from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured


class Environ:
    """The environment and its `problems`: (check id, sentence), told by console.checks."""

    def __init__(self, values: Mapping[str, str] = os.environ) -> None:
        self.values = values
        self.problems: list[tuple[str, str]] = []

    def required(self, name: str, purpose: str) -> str:
        """The value of a setting without which nothing runs. Raises ImproperlyConfigured, naming it."""
        value = self.values.get(name, "")
        if not value:
            raise ImproperlyConfigured(
                f"{name} is not set: {purpose}. `make run` sets it for the embedded stack; see .env.example"
                " for running the processes yourself."
            )
        return value

    def listing(self, name: str, default: str | None = None, purpose: str = "") -> list[str]:
        """Comma-separated values. Required unless a default is given."""
        text = self.required(name, purpose) if default is None else self.values.get(name, default)
        return [word.strip() for word in text.split(",") if word.strip()]

    def flag(self, name: str) -> bool:
        """On for 1, off for 0 or nothing; anything else is a problem (console.E001)."""
        value = self.values.get(name, "0")
        if value not in {"0", "1"}:
            self.problems.append(("console.E001", f"{name} is {value!r}; it takes 1 or 0."))
        return value == "1"

    def integer(self, name: str, default: int) -> int:
        """A whole number, 0 or more; anything else is a problem (console.E001)."""
        value = self.values.get(name, str(default))
        if not value.isdecimal():
            self.problems.append(("console.E001", f"{name} is {value!r}; it takes a whole number."))
            return default
        return int(value)

    def choice(self, name: str, *allowed: str) -> str:
        """One of a few words, the first by default; anything else is a problem (console.E001)."""
        value = self.values.get(name, allowed[0])
        if value not in allowed:
            known = ", ".join(repr(word) for word in allowed)
            self.problems.append(("console.E001", f"{name} is {value!r}; it takes one of {known}."))
            return allowed[0]
        return value
