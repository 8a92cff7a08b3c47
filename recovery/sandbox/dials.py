"""The dials: which fault each provider shows, for which requests, and for how long.

`reply`, `times`, `match`, `delay`, `delay_before` and `retry_after` together are the *hold*: it covers the
accepted POSTs whose body contains `match`, `times` of them, and then lets go. `readback_times` does the same
for `readback`. Dials are kept in the sandbox's file and survive its restart.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

from standardwebhooks import Webhook
from standardwebhooks.webhooks import EmptyWebhookSecretError

from recovery.sandbox.providers import PROVIDERS
from recovery.sandbox.store import Store
from recovery.sandbox.wire import Json

REPLIES: Final = (
    "ok",
    "drop",
    "reset",
    "error500",
    "slow",
    "reject",
    "overload",
    "refuse",
    "garbage",
)
READBACKS: Final = ("ok", "down", "lag")
LONGEST: Final = 3600  # seconds; a longer wait is a mistake in the dial
PROMISED_LAG: Final = 30.0  # seconds; what readback=lag means where readback_lag is 0


@dataclass(frozen=True, slots=True)
class Dial:
    """One provider's settings. Times are seconds; `times` None means until reset."""

    reply: str = "ok"
    times: int | None = None
    match: str | None = None
    delay: float = 1.0
    delay_before: float = 0.0
    retry_after: int = 1
    readback: str = "ok"
    readback_times: int | None = None
    readback_lag: float = 0.0
    keys: bool = True
    key_window: float = 86_400.0
    callback_url: str | None = None
    callback_secret: str | None = field(default=None, repr=False)

    @property
    def lag(self) -> float:
        """How many seconds readback is behind."""
        return self.readback_lag or (PROMISED_LAG if self.readback == "lag" else 0.0)

    def shown(self) -> Json:
        """The settings for people: the secret is only said to be set."""
        return asdict(self) | {"callback_secret": "set" if self.callback_secret else None}


class UnknownProvider(LookupError):
    """There is no provider of this name."""


class BadDial(ValueError):
    """A dial's name or value is not allowed; `errors` has one {"name", "problem", "allowed"} for each."""

    def __init__(self, errors: list[Json]) -> None:
        super().__init__("; ".join(f"{e['name']} {e['problem']} (allowed: {e['allowed']})" for e in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one dial accepts, in words and as a test, and how its value is read from a command line."""

    allowed: object
    accepts: Callable[[Any], bool]
    read: Callable[[str], Any]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _choice(options: tuple[str, ...]) -> _Rule:
    return _Rule(list(options), lambda v: v in options, str)


def _seconds(lowest: float, highest: float) -> _Rule:
    allowed = f"seconds from {lowest:g} to {highest:g}"
    return _Rule(allowed, lambda v: _number(v) and lowest <= v <= highest, float)


def _optional(rule: _Rule) -> _Rule:
    return _Rule(
        f"{rule.allowed}, or null",
        lambda v: v is None or rule.accepts(v),
        lambda v: None if v in ("null", "none") else rule.read(v),
    )


def _secret(value: Any) -> bool:
    if not isinstance(value, str) or not value.startswith("whsec_"):
        return False
    try:
        Webhook(value)
    except (ValueError, EmptyWebhookSecretError):
        return False
    return True


def is_url(value: Any) -> bool:
    """Whether a callback can be sent there: an absolute http or https address."""
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


_COUNT: Final = _Rule("a whole number from 1", lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 1, int)
_SWITCH: Final = _Rule("true or false", lambda v: isinstance(v, bool), lambda v: {"true": True, "false": False}[v])
RULES: Final[Mapping[str, _Rule]] = {
    "reply": _choice(REPLIES),
    "times": _optional(_COUNT),
    "match": _optional(_Rule("a text that is not empty", lambda v: isinstance(v, str) and v != "", str)),
    "delay": _seconds(0, LONGEST),
    "delay_before": _seconds(0, LONGEST),
    "retry_after": _Rule(
        f"whole seconds from 0 to {LONGEST}",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= LONGEST,
        int,
    ),
    "readback": _choice(READBACKS),
    "readback_times": _optional(_COUNT),
    "readback_lag": _seconds(0, LONGEST),
    "keys": _SWITCH,
    "key_window": _seconds(0.001, 400 * 86_400),
    "callback_url": _optional(_Rule("an http or https address", is_url, str)),
    "callback_secret": _optional(_Rule("a whsec_ secret in base64", _secret, str)),
}


def read_setting(name: str, text: str) -> object:
    """A command line's `name=text` as a value; what cannot be read stays text, for `check` to refuse."""
    rule = RULES.get(name)
    if rule is None:
        return text
    try:
        return rule.read(text)
    except (ValueError, KeyError):
        return text


def check(provider: str, settings: Json) -> None:
    """Raises BadDial naming each setting that does not exist, does not fit, or means nothing here."""
    errors: list[Json] = []
    for name, value in settings.items():
        rule = RULES.get(name)
        if rule is None:
            errors.append({"name": name, "problem": "is not a dial", "allowed": list(RULES)})
        elif not rule.accepts(value):
            errors.append({"name": name, "problem": f"cannot be {value!r}", "allowed": rule.allowed})
        elif name.startswith("readback") and not PROVIDERS[provider].readback:
            allowed = [p.name for p in PROVIDERS.values() if p.readback]
            errors.append({"name": name, "problem": f"{provider} has no readback", "allowed": allowed})
    if errors:
        raise BadDial(errors)


class Dials:
    """All providers' dials, kept in `store`. Safe to use from many threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._dials = {name: Dial(keys=provider.keys) for name, provider in PROVIDERS.items()}
        for row in store.rows("select provider, settings from dials"):
            self._dials[row["provider"]] = Dial(**json.loads(row["settings"]))

    def get(self, provider: str) -> Dial:
        """The provider's settings now. Raises UnknownProvider."""
        try:
            return self._dials[provider]
        except KeyError:
            raise UnknownProvider(provider) from None

    def all(self) -> dict[str, Dial]:
        """Every provider's settings."""
        return dict(self._dials)

    def set(self, provider: str, settings: Json) -> Dial:
        """Change the named settings and leave the others; a new `reply` or `readback` starts its count anew.

        Raises UnknownProvider, BadDial.
        """
        self.get(provider)
        check(provider, settings)
        fresh: Json = dict(settings)
        if "reply" in settings:
            fresh = {"times": None, "match": None} | fresh
        if "readback" in settings:
            fresh = {"readback_times": None} | fresh
        with self._lock:
            dial = replace(self._dials[provider], **fresh)
            if bool(dial.callback_url) != bool(dial.callback_secret):
                missing = "callback_secret" if dial.callback_url else "callback_url"
                allowed = "callback_url and callback_secret together"
                raise BadDial([{"name": missing, "problem": "is missing", "allowed": allowed}])
            return self._keep(provider, dial)

    def reset(self, provider: str) -> Dial:
        """Back to how the provider behaves by itself. Raises UnknownProvider."""
        self.get(provider)
        with self._lock:
            return self._keep(provider, Dial(keys=PROVIDERS[provider].keys))

    def claim(self, provider: str, body: str) -> Dial:
        """The settings that hold for this POST, one of `times` used up; without a hold, its reply is "ok"."""
        with self._lock:
            dial = self._dials[provider]
            released = replace(dial, reply="ok", times=None, match=None, delay=1.0, delay_before=0.0, retry_after=1)
            if dial.match is not None and dial.match not in body:
                return released
            if dial.times is not None:
                more = dial.times > 1
                self._keep(provider, replace(dial, times=dial.times - 1) if more else released)
            return dial

    def claim_readback(self, provider: str) -> Dial:
        """The settings that hold for this readback, one of `readback_times` used up."""
        with self._lock:
            dial = self._dials[provider]
            if dial.readback_times is not None:
                left = dial.readback_times - 1
                spent = replace(dial, readback="ok", readback_times=None, readback_lag=0.0)
                self._keep(provider, replace(dial, readback_times=left) if left else spent)
            return dial

    def _keep(self, provider: str, dial: Dial) -> Dial:
        with self._store.transaction() as db:
            db.execute("insert or replace into dials values (?, ?)", (provider, json.dumps(asdict(dial))))
        self._dials[provider] = dial
        return dial
