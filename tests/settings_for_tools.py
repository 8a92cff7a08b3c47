"""Settings for tools that read the models without running anything (mypy's Django plugin)."""

import base64
import os
import tempfile

PLACEHOLDERS = {
    "SECRET_KEY": "only-for-tools-that-read-the-models-and-start-nothing-0123456789",
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "ALLOWED_HOSTS": "localhost",
    "RECOURSE_DATA": tempfile.gettempdir(),
    "RECOURSE_SEAL_KEYS": f"none:{base64.b64encode(bytes(32)).decode()}",
}
for name, value in PLACEHOLDERS.items():
    os.environ.setdefault(name, value)

from console.settings import *  # noqa: E402, F403
