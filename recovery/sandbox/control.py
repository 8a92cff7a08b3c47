"""The sandbox's own addresses, which no provider has: dials, ledger, callbacks, health."""

import os
from collections.abc import Callable
from typing import Any, Final

from recovery.sandbox import callbacks, ledger
from recovery.sandbox.callbacks import Callbacks
from recovery.sandbox.clock import iso, now_us
from recovery.sandbox.dials import RULES, BadDial, Dials, UnknownProvider, is_url
from recovery.sandbox.providers import PROVIDERS
from recovery.sandbox.store import Store
from recovery.sandbox.wire import BadJson, Json, Reply, answer, load, problem

NAMES: Final = ", ".join(PROVIDERS)
KNOWN: Final = (
    "GET /_health, GET and DELETE /_dials, GET, PUT and DELETE /_dials/{provider}, GET /_ledger, "
    "GET /_ledger/requests, GET /_callbacks, POST /_callbacks/send"
)


class Control:
    """Answers the addresses that begin with `/_`."""

    def __init__(self, store: Store, dials: Dials, sender: Callbacks) -> None:
        self._store = store
        self._dials = dials
        self._sender = sender
        self._started_at = iso(now_us())

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        """The answer to `method` `path`; refusals are problems that name the field and what is allowed."""
        try:
            return self._route(method, path, query, body)
        except UnknownProvider as unknown:
            return problem(404, "Unknown provider", f"{unknown} is not a provider; known: {NAMES}")
        except BadDial as bad:
            return problem(400, "Dial refused", str(bad), bad.errors)
        except BadJson as bad:
            return problem(400, "Unreadable body", str(bad))

    def _route(self, method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        match (method, path.split("/")[1:]):
            case ("GET", ["_health"]):
                facts: Json = {"status": "ok", "pid": os.getpid(), "started_at": self._started_at}
                return answer(200, facts | ledger.totals(self._store))
            case ("GET", ["_dials"]):
                return answer(200, {name: dial.shown() for name, dial in self._dials.all().items()})
            case ("DELETE", ["_dials"]):
                return answer(200, {name: self._dials.reset(name).shown() for name in PROVIDERS})
            case ("GET", ["_dials", provider]):
                return answer(200, self._dials.get(provider).shown())
            case ("PUT", ["_dials", provider]):
                return answer(200, self._dials.set(provider, load(body)).shown())
            case ("DELETE", ["_dials", provider]):
                return answer(200, self._dials.reset(provider).shown())
            case ("GET", ["_ledger"]):
                return answer(200, {"intents": ledger.intents(self._store, query.get("intent"))})
            case ("GET", ["_ledger", "requests"]):
                return answer(200, {"requests": ledger.requests(self._store, query.get("intent"))})
            case ("GET", ["_callbacks"]):
                return answer(200, {"callbacks": self._sender.sent()})
            case ("POST", ["_callbacks", "send"]):
                return self._send(load(body))
        return problem(404, "Unknown address", f"{method} {path} is not known here; known: {KNOWN}")

    def _send(self, asked: Json) -> Reply:
        rules: dict[str, tuple[Callable[[Any], object], object]] = {
            "provider": (lambda v: v in PROVIDERS, list(PROVIDERS)),
            "url": (is_url, "an http or https address"),
            "secret": (
                lambda v: v is not None and RULES["callback_secret"].accepts(v),
                "a whsec_ secret in base64",
            ),
            "event": (lambda v: isinstance(v, dict), "an object"),
            "id": (
                lambda v: v is None or (isinstance(v, str) and v.isascii() and v.isprintable() and v),
                "a text",
            ),
        }
        errors = [
            {"name": name, "problem": "is missing or does not fit", "allowed": allowed}
            for name, (fits, allowed) in rules.items()
            if not fits(asked.get(name))
        ]
        if errors:
            raise BadDial(errors)
        callback = callbacks.new(asked["provider"], asked["url"], asked["secret"], asked["event"], id=asked.get("id"))
        return answer(200, self._sender.send(callback).shown())
