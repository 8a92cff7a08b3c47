"""Where everything is."""

from django.urls import include, path

from console.health import healthz

handler400 = "console.http.bad_request"
handler403 = "console.http.not_allowed"
handler404 = "console.http.not_here"
handler500 = "console.http.server_error"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("api/v1/", include("console.api.urls")),
    path("", include("console.screens.urls")),
]
