"""Settings of all processes, from the environment. `manage.py up` sets it; .env.example lists it."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP
from kombu import Queue
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from console.environ import Environ

env = Environ()
BASE_DIR = Path(__file__).resolve().parent.parent

# What everything needs
SECRET_KEY = env.required("SECRET_KEY", "it signs sessions and links; at least 50 random characters")
DEBUG = env.flag("DEBUG")
ALLOWED_HOSTS = env.listing("ALLOWED_HOSTS", purpose="the host names this installation answers to, comma-separated")
RECOURSE_DATA = Path(env.required("RECOURSE_DATA", "the folder for static files and the archive"))
RECOURSE_PART = env.values.get("RECOURSE_PART", "command")  # which process this is, for logs and heartbeats
RECOURSE_ADDRESS = env.values.get("RECOURSE_ADDRESS")  # of the console, for links in messages; None without one
RECOURSE_SANDBOX_URL = env.values.get("RECOURSE_SANDBOX_URL")  # None where there is no sandbox
# The file that says what was last seen of the record, where no restore of it writes; None compares the cluster only.
RECOURSE_OUTSIDE = Path(env.values["RECOURSE_OUTSIDE"]) if env.values.get("RECOURSE_OUTSIDE") else None
RECOURSE_METRICS_TOKEN = env.values.get("RECOURSE_METRICS_TOKEN", "")  # whoever reads /metrics; empty: nobody
RECOURSE_SEAL_KEYS = env.required("RECOURSE_SEAL_KEYS", "checkpoints are sealed with them; id:base64,id:base64")

RECOURSE_ARCHIVE_URL = env.values.get("RECOURSE_ARCHIVE_URL") or (RECOURSE_DATA / "archive").resolve().as_uri()

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "runs",
    "recovery",
    "console",
    "demo",
    "guardian",
    "rest_framework",
    "drf_spectacular",
    "channels",
    "django_htmx",
    "heroicons",
    "axes",
    # Whoever runs this installation adds what they wrote: each app's contracts.py is found.
    *(app.strip() for app in env.values.get("RECOURSE_APPS", "").split(",") if app.strip()),
]
MIDDLEWARE = [
    "console.middleware.RequestId",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",  # it says the length, so what changes a page stands below it
    "console.middleware.NothingHidden",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "console.middleware.SignedIn",
    "console.middleware.PersonSettings",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",  # last: it answers for a sign-in that was refused
]
ROOT_URLCONF = "console.urls"
WSGI_APPLICATION = "console.wsgi.application"
ASGI_APPLICATION = "console.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "console.shell.shell",
            ]
        },
    }
]

# The record. `dispatch` has many threads over few connections, given back before each call (a pool); every
# other process keeps one connection a thread for its whole life.
POOLED = env.choice("RECOURSE_POOL", "", "dispatch") == "dispatch"
STATEMENT_TIMEOUT = env.integer("RECOURSE_STATEMENT_TIMEOUT", 30)  # seconds; 0 for migrations
IDLE_IN_TRANSACTION = "-c idle_in_transaction_session_timeout=30s"
try:
    database = conninfo_to_dict(env.required("DATABASE_URL", "postgresql://user:password@host:port/name"))
except ProgrammingError as error:
    raise ImproperlyConfigured(f"DATABASE_URL is no PostgreSQL address: {error}") from error
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database.pop("dbname", ""),
        "USER": database.pop("user", ""),
        "PASSWORD": database.pop("password", ""),
        "HOST": database.pop("host", ""),
        "PORT": database.pop("port", ""),
        "CONN_MAX_AGE": 0 if POOLED else None,
        "CONN_HEALTH_CHECKS": True,  # a connection that went with the server is not used again
        "OPTIONS": {
            "connect_timeout": 3,
            "application_name": f"recourse {RECOURSE_PART}",
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT}s {IDLE_IN_TRANSACTION}",
            **({"pool": {"min_size": 2, "max_size": 8, "timeout": 10}} if POOLED else {}),
            **database,
        },
    }
}

# Doorbells: none of these holds a fact.
REDIS_URL = env.required("REDIS_URL", "redis://:password@host:port/0, for doorbells and live updates")
RECOURSE_HOT_URL = env.values.get("RECOURSE_HOT_URL", REDIS_URL)  # newest checkpoints, for five minutes
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}
CELERY_BROKER_URL = env.values.get("BROKER_URL", REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # the supervisor decides when to give up, not the worker
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 2,
    # A worker waits for messages; a request that rings must not wait for a broker that hangs.
    "socket_timeout": 10 if RECOURSE_PART in ("advance", "dispatch") else 2,
    "max_retries": 0,  # of a publish: without it kombu waits 6 s for a broker that is away; workers have their own rule
    "visibility_timeout": 3600,
}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_PUBLISH_RETRY = False  # a lost doorbell is the sweep's; a request must not wait for the broker
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False  # a flushed broker stops no run
CELERY_TASK_QUEUES = [Queue(name) for name in ("advance", "dispatch")]  # the sweep takes no messages
CELERY_TASK_DEFAULT_QUEUE = "advance"
CELERY_TASK_ROUTES = {
    name: {"queue": "dispatch"} for name in ("dispatch", "reconcile", "lose", "notify", "ask", "recover")
}
CELERY_TASK_CREATE_MISSING_QUEUES = False
# Celery closes the connection around each task unless told to keep it: 6.6 ms a task. The pool wants it
# closed, which only gives the connection back.
CELERY_DB_REUSE_MAX = 0 if POOLED else 2**31

# People
AUTH_USER_MODEL = "runs.Person"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None  # django-guardian: there is no anonymous person
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/sign-in/"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AXES_FAILURE_LIMIT = 5
AXES_LOCKOUT_CALLABLE = "console.screens.auth.too_many"
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]  # guessing from afar must not lock the person out
AXES_USERNAME_FORM_FIELD = "username"  # as Django's form names it; it holds the e-mail address
AXES_RESET_ON_SUCCESS = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# The browser
PLAIN_HTTP = env.flag("RECOURSE_PLAIN_HTTP")  # only for the loopback address: cookies travel without TLS
BEHIND_PROXY = env.flag("RECOURSE_BEHIND_PROXY")  # a proxy ends TLS and always sets X-Forwarded-Proto
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_HSTS_SECONDS = 0 if PLAIN_HTTP else 31_536_000
SECURE_CSP = {
    "default-src": [CSP.SELF],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_NAME = "recourse_session" if PLAIN_HTTP else "__Host-recourse_session"
SESSION_COOKIE_SECURE = not PLAIN_HTTP
SESSION_COOKIE_SAMESITE = "Lax"  # a link in a page at night must find the session
SESSION_COOKIE_AGE = 8 * 3600
CSRF_COOKIE_NAME = "recourse_csrf" if PLAIN_HTTP else "__Host-recourse_csrf"
CSRF_COOKIE_SECURE = not PLAIN_HTTP
CSRF_FAILURE_VIEW = "console.http.csrf_failure"
CSRF_COOKIE_HTTPONLY = True  # pages carry the token themselves
LANGUAGE_COOKIE_SECURE = not PLAIN_HTTP
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

# Notices by e-mail; without a host there are none, and each says so
MAIL_HOST = env.values.get("RECOURSE_MAIL_HOST", "")
RECOURSE_MAIL_FROM = env.values.get("RECOURSE_MAIL_FROM", "recourse@localhost")
MAILERS = {}
SILENCED_SYSTEM_CHECKS = [] if MAIL_HOST else ["mail.W001"]  # each notice says that no mail server is set
if MAIL_HOST:
    MAILERS["default"] = {
        "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "OPTIONS": {
            "host": MAIL_HOST,
            "port": env.integer("RECOURSE_MAIL_PORT", 25),
            "username": env.values.get("RECOURSE_MAIL_USER", ""),
            "password": env.values.get("RECOURSE_MAIL_PASSWORD", ""),
            "use_tls": env.flag("RECOURSE_MAIL_TLS"),
            "timeout": 15,
        },
    }

STATIC_URL = "/static/"
STATIC_ROOT = RECOURSE_DATA / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},  # nothing is uploaded
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_KEEP_ONLY_HASHED_FILES = True

# Words and time
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_TZ = True
TIME_ZONE = "UTC"

# The API denies until console.api says who may come in.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {"TITLE": "Recourse", "VERSION": "1", "SERVE_INCLUDE_SCHEMA": False}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "no_health": {  # polled all day; its answer is in the answer
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: "/healthz" not in record.getMessage(),
        }
    },
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "django.request": {"filters": ["no_health"]},
        "httpx": {"level": "WARNING"},  # one line a call, with the address in it
    },
}

CONFIGURATION_PROBLEMS = env.problems
