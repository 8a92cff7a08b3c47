"""Asks /healthz whether every part is up."""

import http.client
import json
import time
import urllib.error
import urllib.request


class Readiness:
    """One installation's health as seen from outside; `missing` names what was not up at the last look."""

    def __init__(self, address: str) -> None:
        self.url = f"{address}/healthz"
        self.missing: list[str] = ["web"]
        self._next = 0.0

    def is_complete(self) -> bool:
        """Whether each part says that it is up. Asks at most four times a second."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + 0.25
        try:
            with urllib.request.urlopen(self.url, timeout=5) as answer:
                body = answer.read()
        except urllib.error.HTTPError as refusal:
            body = refusal.read()
        except (OSError, http.client.HTTPException):
            self.missing = ["web"]
            return False
        try:
            parts = json.loads(body)["parts"]
        except (ValueError, KeyError):
            self.missing = ["web"]
            return False
        self.missing = sorted(name for name, part in parts.items() if part["state"] != "up")
        return not self.missing
