"""Secrets of one installation: made at the first start, kept in `secrets/` (0600)."""

import base64
import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from console.stack.layout import Layout, write_private


@dataclass(frozen=True)
class Secrets:
    """The secrets in one folder (which must exist)."""

    folder: Path

    def text(self, name: str, make: Callable[[], str]) -> str:
        """The secret `name`, made by `make` when there is none yet."""
        path = self.folder / name
        with _locked(self.folder):
            if not path.exists():
                write_private(path, make())
            return path.read_text(encoding="utf-8")

    @property
    def django_key(self) -> str:
        """Django's SECRET_KEY."""
        return self.text("django-key", lambda: secrets.token_urlsafe(64))

    @property
    def seal_keys(self) -> str:
        """Keys that checkpoints are sealed with, `id:base64,...`; the first seals, all open."""
        return self.text("seal-keys", lambda: f"k1:{base64.b64encode(secrets.token_bytes(32)).decode()}")

    @property
    def superuser_password(self) -> str:
        """Of PostgreSQL's superuser, which only `up` uses."""
        return self.text("postgres-superuser", secrets.token_urlsafe)

    @property
    def database_password(self) -> str:
        """Of the role that Recourse works as."""
        return self.text("postgres-recourse", secrets.token_urlsafe)

    @property
    def valkey_password(self) -> str:
        return self.text("valkey", secrets.token_urlsafe)

    def accounts(self) -> dict[str, str]:
        """E-mail to password of the accounts made so far, in the order they were made."""
        path = self.folder / "accounts.json"
        if not path.exists():
            return {}
        found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def account_password(self, email: str) -> str:
        """The password of a demo account: random per installation, the same at each call."""
        with _locked(self.folder):
            accounts = self.accounts()
            if email not in accounts:
                # Five groups of four: long enough to resist guessing, short enough to type from a terminal.
                accounts[email] = "-".join(_group() for _ in range(5))
                write_private(self.folder / "accounts.json", json.dumps(accounts, indent=2) + "\n")
            return accounts[email]


def account_password(email: str) -> str:
    """The same for the installation this process belongs to (environment variable RECOURSE_DATA)."""
    return installed().account_password(email)


def installed() -> Secrets:
    """The secrets of the installation this process belongs to. Raises KeyError without RECOURSE_DATA."""
    layout = Layout.at(os.environ["RECOURSE_DATA"])
    layout.secrets.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Secrets(layout.secrets)


def _group() -> str:
    return "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(4))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One maker at a time: two processes that ask for the same new secret get the same one."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
