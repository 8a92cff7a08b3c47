"""What a program can do, below /api/v1/; the nouns are the screens'."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from console.api.actions import OneAction
from console.api.base import Nowhere
from console.api.callbacks import DependencyCallbacks
from console.api.effects import OneEffect, RunEffects
from console.api.events import RunEvents
from console.api.runs import OneRun, WorkspaceRuns
from console.api.schema import SchemaView
from console.api.signals import RunSignals

_all: list[URLPattern | URLResolver] = [
    path("workspaces/<slug:slug>/runs", WorkspaceRuns.as_view(), name="workspace-runs"),
    path("runs/<uuid:run>", OneRun.as_view(), name="run"),
    path("runs/<uuid:run>/events", RunEvents.as_view(), name="run-events"),
    path("runs/<uuid:run>/effects", RunEffects.as_view(), name="run-effects"),
    path("runs/<uuid:run>/signals", RunSignals.as_view(), name="run-signals"),
    path("effects/<uuid:effect>", OneEffect.as_view(), name="effect"),
    path("actions/<uuid:action>", OneAction.as_view(), name="action"),
    path("callbacks/<uuid:dependency>", DependencyCallbacks.as_view(), name="callbacks"),
    path("schema/", SchemaView.as_view(), name="schema"),
    re_path(r"^.*$", Nowhere.as_view(), name="nowhere"),
]

urlpatterns: list[URLPattern | URLResolver] = [path("", include((_all, "api")))]
