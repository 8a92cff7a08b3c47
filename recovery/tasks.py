"""Celery tasks: doorbells. Each names a row; what is done is read from the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from celery import Task, shared_task
from django.db import close_old_connections

from recovery.engine import advance as advancing
from recovery.engine import computing, mending_runs
from recovery.engine import dispatch as dispatching
from recovery.engine import reconcile as reconciling
from recovery.upkeep import notify as notifying
from recovery.upkeep import recover as recovering

if TYPE_CHECKING:
    BaseTask = Task[..., Any]
else:
    BaseTask = Task


class Doorbell(BaseTask):
    """A task that survives a record that was away: a connection that broke is dropped, the next task opens another."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        finally:
            close_old_connections()


@shared_task(base=Doorbell, name="advance")
def advance(workspace: str, run: str) -> str:
    """Advance a run if it is due."""
    return advancing.advance(UUID(workspace), UUID(run))


@shared_task(base=Doorbell, name="dispatch")
def dispatch(effect: str) -> str:
    """Send an effect if it is ready."""
    return dispatching.dispatch(UUID(effect))


@shared_task(base=Doorbell, name="reconcile")
def reconcile(effect: str) -> str:
    """Find out about an effect."""
    return reconciling.reconcile(UUID(effect))


@shared_task(base=Doorbell, name="mend")
def mend(plan: str) -> str:
    """Do the next thing about a compensation plan."""
    return mending_runs.mend(UUID(plan))


@shared_task(base=Doorbell, name="lose")
def lose(attempt: str) -> str:
    """Give an attempt up that is past its limit or whose sender died."""
    return reconciling.lose(UUID(attempt))


@shared_task(base=Doorbell, name="recover")
def recover(restore: str) -> str:
    """Go on with the sweep after a restore."""
    return recovering.carry_on(UUID(restore))


@shared_task(base=Doorbell, name="notify")
def notify(notice: str) -> str:
    """Send a notice that is due."""
    return notifying.deliver(UUID(notice))


@shared_task(base=Doorbell, name="ask")
def ask(call: str) -> str:
    """Make a call that was handed over."""
    return computing.ask(UUID(call))
