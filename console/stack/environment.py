"""The environment that our processes are started with: every setting, named."""

import json
import os
from collections.abc import Mapping

from console.stack.layout import Layout, write_private
from console.stack.services import Services

# Taken over from the caller's environment: what the machine needs, and nothing that could be a setting.
KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "USER",
    "VIRTUAL_ENV",
    "CI",
    "SSL_CERT_FILE",
    "COVERAGE_RCFILE",
)


def build(services: Services, *, address: str, sandbox: str) -> dict[str, str]:
    """The settings of one installation. `address` and `sandbox` are URLs without a path.

    Raises StackError through the secrets when the folder cannot be written.
    """
    host = address.partition("://")[2].partition(":")[0]
    return {
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "SECRET_KEY": services.secrets.django_key,
        "DATABASE_URL": services.database_url,
        "REDIS_URL": services.redis_url,
        "ALLOWED_HOSTS": ",".join(sorted({host, "localhost"})),
        "RECOURSE_DATA": str(services.data),
        "RECOURSE_OUTSIDE": str(services.data / "outside" / "record.json"),
        "RECOURSE_SEAL_KEYS": services.secrets.seal_keys,
        "RECOURSE_ADDRESS": address,
        "RECOURSE_SANDBOX_URL": sandbox,
        # Where a drill lays what a worker is to do at a failpoint. Only this stack sets it.
        "RECOURSE_DRILLS": str(services.layout.drills),
        # Served on the loopback address without TLS; cookies could not be `Secure` there in every browser.
        "RECOURSE_PLAIN_HTTP": "1",
        "PYTHONUNBUFFERED": "1",
    }


def for_child(settings: Mapping[str, str], **more: str) -> dict[str, str]:
    """The whole environment of a child: what the machine needs, the settings, and `more`.

    Failpoints and other RECOURSE_ variables of the caller pass through, so that a drill can set them.
    """
    passed = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("RECOURSE_")}
    return {**passed, **settings, **more}


def save(layout: Layout, settings: Mapping[str, str]) -> None:
    """Leave the settings where other commands of this installation find them (0600)."""
    write_private(layout.environment, json.dumps(settings, indent=2) + "\n")


def load(data: str | os.PathLike[str]) -> dict[str, str]:
    """The settings that `up` left in a data folder; empty when it never ran there."""
    path = Layout.at(data).environment
    if not path.exists():
        return {}
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found
