"""Celery tasks: doorbells. Each names a row; what is done is read from the record."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from recovery.engine import advance as advancing
from recovery.engine import dispatch as dispatching
from recovery.engine import reconcile as reconciling


@shared_task(name="advance", queue="advance")
def advance(workspace: str, run: str) -> str:
    """Advance a run if it is due."""
    return advancing.advance(UUID(workspace), UUID(run))


@shared_task(name="dispatch", queue="dispatch")
def dispatch(effect: str) -> str:
    """Send an effect if it is ready."""
    return dispatching.dispatch(UUID(effect))


@shared_task(name="reconcile", queue="dispatch")
def reconcile(effect: str) -> str:
    """Find out about an effect."""
    return reconciling.reconcile(UUID(effect))


@shared_task(name="lose", queue="dispatch")
def lose(attempt: str) -> str:
    """Give an attempt up that is past its limit or whose sender died."""
    return reconciling.lose(UUID(attempt))
