"""Where everything is."""

from django.urls import include, path

from console.health import healthz
from console.metrics import metrics

handler400 = "console.http.bad_request"
handler403 = "console.http.not_allowed"
handler404 = "console.http.not_here"
handler500 = "console.http.server_error"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include("console.api.urls")),
    path("", include("console.screens.urls")),
]
