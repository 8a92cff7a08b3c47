"""GET /healthz: is each part up? For load balancers and `manage.py up`; says nothing about any workspace."""

import urllib.error
import urllib.request
from datetime import timedelta
from typing import Literal

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from runs import queries
from runs.models import Worker

State = Literal["up", "down", "unknown", "frozen"]

POOLS = ("advance", "dispatch", "sweep")
FRESH = timedelta(seconds=15)  # three heartbeats of 5 s
PATIENCE = 2.0  # seconds a part has to answer


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when every part is up, else 503.

    Body: {"ok": bool, "parts": {name: {"state": "up" | "down" | "unknown"}}, "sending": "up" | "frozen"}. Frozen: the
    record was restored and people have not let things be sent again; the parts are up all the same.
    """
    del request
    states: dict[str, State] = {"web": "up", "valkey": _valkey(), **_record()}
    if settings.RECOURSE_SANDBOX_URL:
        states["sandbox"] = _sandbox(settings.RECOURSE_SANDBOX_URL)
    ok = all(state == "up" for state in states.values())
    parts = {name: {"state": state} for name, state in sorted(states.items())}
    return JsonResponse({"ok": ok, "parts": parts, "sending": _sending()}, status=200 if ok else 503)


def _record() -> dict[str, State]:
    """PostgreSQL, and by its heartbeat rows each pool; without the record nobody knows about the pools."""
    try:
        recent = Worker.objects.filter(pool__in=POOLS, seen_at__gte=Now() - FRESH)
        alive = set(recent.values_list("pool", flat=True).distinct())
    except DatabaseError:
        connection.close()  # the next request gets a new one
        return {"postgres": "down", **dict.fromkeys(POOLS, "unknown")}
    pools: dict[str, State] = {pool: "up" if pool in alive else "down" for pool in POOLS}
    return {"postgres": "up", **pools}


def _sending() -> State:
    try:
        return "frozen" if queries.any_holding() else "up"
    except DatabaseError:
        connection.close()
        return "unknown"


def _valkey() -> State:
    url = settings.REDIS_URL
    with redis.Redis.from_url(url, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE) as client:
        try:
            client.ping()
        except redis.RedisError:
            return "down"
    return "up"


def _sandbox(url: str) -> State:
    try:
        with urllib.request.urlopen(f"{url}/_health", timeout=PATIENCE) as answer:
            return "up" if answer.status == 200 else "down"
    except (OSError, urllib.error.URLError):
        return "down"
