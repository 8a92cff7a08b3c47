"""The sandbox's controls over HTTP, for the command line and for tests that start it as a process."""

import http.client
import json
from typing import Any, Final
from urllib.parse import quote, urlsplit

from recovery.sandbox.wire import Json, dump

TIMEOUT: Final = 10.0  # seconds


class SandboxUnreachable(ConnectionError):
    """Nothing answers as a sandbox at this address."""


class SandboxRefused(ValueError):
    """The sandbox refused; `problem` is its problem+json."""

    def __init__(self, problem: Json) -> None:
        super().__init__(str(problem.get("detail", problem)))
        self.problem = problem


class SandboxClient:
    """Speaks to the sandbox at `url` (http://host:port). Calls raise SandboxUnreachable, SandboxRefused."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url} is not an address like http://127.0.0.1:8010")
        self._host, self._port = parts.hostname, parts.port or 80

    def dial(self, provider: str, **settings: Any) -> Json:
        """Set a provider's dials; all its dials as they are now."""
        return self._ask("PUT", f"/_dials/{quote(provider, safe='')}", settings)

    def dials(self) -> Json:
        """Every provider's dials."""
        return self._ask("GET", "/_dials")

    def reset(self, provider: str | None = None) -> Json:
        """Reset one provider's dials, or all. The ledger stays."""
        return self._ask("DELETE", f"/_dials/{quote(provider, safe='')}" if provider else "/_dials")

    def ledger(self, intent: str | None = None) -> list[Json]:
        """The ledger's entries, of one intent or all."""
        return self._list("/_ledger", "intents", intent)

    def requests(self, intent: str | None = None) -> list[Json]:
        """The requests received, of one intent or all."""
        return self._list("/_ledger/requests", "requests", intent)

    def applied(self, key: str) -> int:
        """How often the intent `key` took effect."""
        return sum(entry["applied"] for entry in self.ledger(key))

    def callbacks(self) -> list[Json]:
        """The callbacks sent."""
        return self._list("/_callbacks", "callbacks", None)

    def send_callback(self, **asked: Any) -> Json:
        """Send a signed callback now: provider, url, secret, event, and id to repeat one."""
        return self._ask("POST", "/_callbacks/send", asked)

    def health(self) -> Json:
        """Its process and its totals."""
        return self._ask("GET", "/_health")

    def _list(self, path: str, name: str, intent: str | None) -> list[Json]:
        query = "" if intent is None else f"?intent={quote(intent, safe='')}"
        found: list[Json] = self._ask("GET", path + query)[name]
        return found

    def _ask(self, method: str, path: str, body: Json | None = None) -> Json:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        try:
            sent = None if body is None else dump(body)
            connection.request(method, path, sent, {"Content-Type": "application/json"})
            response = connection.getresponse()
            value = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SandboxUnreachable(f"no sandbox answers at {self.url}: {error}") from error
        finally:
            connection.close()
        if not isinstance(value, dict):
            raise SandboxUnreachable(f"what answers at {self.url} is not a sandbox")
        if response.status >= 400:
            raise SandboxRefused(value)
        return value
