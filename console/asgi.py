"""What uvicorn serves: HTTP by Django's WSGI handler in four threads, WebSockets by Channels.

Django's ASGI handler opens a database connection a request; four threads that keep theirs took twice the
requests on two cores. `make_application` refuses to start on a wrong configuration, as commands do.
"""

from typing import Any

from a2wsgi import WSGIMiddleware
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from console.wsgi import application as wsgi_application

THREADS = 4


def make_application() -> Any:
    """The application. Raises ImproperlyConfigured with every system check's error."""
    errors = [problem for problem in checks.run_checks() if problem.is_serious()]
    if errors:
        raise ImproperlyConfigured("\n".join(str(problem) for problem in errors))
    live = URLRouter(import_string("console.live.websocket_urlpatterns"))  # by name: settings import no screen
    return ProtocolTypeRouter(
        {
            "http": WSGIMiddleware(wsgi_application, workers=THREADS),
            "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(live)),
        }
    )


application = make_application()
