"""GET /metrics: the figures of ``recovery.upkeep.metrics`` in Prometheus' text form, for whoever has the token."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from recovery.upkeep.metrics import Figure, figures

PREFIX = "recourse_"


class Given(Collector):
    """Figures that were computed, as gauges: one family a name."""

    def __init__(self, found: list[Figure]) -> None:
        self.found = found

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """One family for each name, in the order they come."""
        families: dict[str, GaugeMetricFamily] = {}
        for one in self.found:
            names = sorted(one.labels)
            family = families.get(one.name)
            if family is None:
                family = families[one.name] = GaugeMetricFamily(PREFIX + one.name, one.help, labels=names)
            family.add_metric([one.labels[name] for name in names], float(one.value))
        return families.values()


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures. Without a token in the settings there is no such address; a wrong one is a 401."""
    token = settings.RECOURSE_METRICS_TOKEN
    if not token:
        raise Http404
    given = request.headers.get("Authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        answer = HttpResponse(status=401)
        answer["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return answer
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Given(figures()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
