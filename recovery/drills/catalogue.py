"""The drills there are: each one fault, how it is brought about, and how one knows that it bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from runs.models import Event
from runs.states import EventKind


class Hands(Protocol):
    """What a drill can do to the live stack; whoever runs the stack lends them."""

    def arm(self, point: str, action: str) -> None:
        """Have the first worker that passes ``point`` do ``action`` (see ``recovery.failpoints``)."""

    def disarm(self, point: str) -> bool:
        """Take that back; False when it was done already."""

    def restart(self, part: str) -> None:
        """Kill a part of the stack; returns when its successor was started."""

    def flush_broker(self) -> None:
        """Empty the broker: every doorbell on its way is lost."""

    def lose_replies(self, times: int) -> None:
        """The stand-in downstream applies the next requests and drops the connection instead of answering."""


@dataclass(frozen=True)
class Fault:
    """``before`` the runs are started, ``between`` two of them (given how many so far), and whether it ``bit`` them."""

    name: str
    says: str
    before: Callable[[Hands], None]
    between: Callable[[Hands, int], None]
    bit: Callable[[Hands, Sequence[UUID]], bool]


def _nothing(hands: Hands) -> None:
    pass


def _nothing_between(hands: Hands, n: int) -> None:
    pass


def _always(hands: Hands, ids: Sequence[UUID]) -> bool:
    return True


def _at(name: str, says: str, point: str, action: str) -> Fault:
    """A fault at a failpoint; it bit when somebody passed by."""
    return Fault(
        name, says, lambda hands: hands.arm(point, action), _nothing_between, lambda hands, ids: not hands.disarm(point)
    )


def _restart_postgres(hands: Hands, n: int) -> None:
    if n == 3:
        hands.restart("postgres")


def _heard_nothing(hands: Hands, ids: Sequence[UUID]) -> bool:
    """Whether an outcome of one of the runs was unknown for a while."""
    return Event.objects.filter(run_id__in=ids, kind=EventKind.EFFECT_UNKNOWN).exists()


DRILLS: Final[dict[str, Fault]] = {
    fault.name: fault
    for fault in (
        _at(
            "worker_killed",
            "A worker is killed after it sent and before it recorded the answer.",
            "send.after",
            "kill",
        ),
        _at(
            "worker_stopped",
            "A worker is stopped past its lease, right before a commit, and wakes up when another has taken over.",
            "advance.before_commit",
            "stop(25)",
        ),
        _at(
            "commit_unanswered",
            "The record commits, and the connection breaks before the worker hears of it.",
            "advance.before_commit",
            "do_then_raise",
        ),
        Fault(
            "broker_flushed",
            "The broker loses every doorbell, again and again.",
            _nothing,
            lambda hands, n: hands.flush_broker(),
            _always,
        ),
        Fault("postgres_restarted", "PostgreSQL is killed in the middle.", _nothing, _restart_postgres, _always),
        Fault(
            "reply_lost",
            "The downstream does what it is asked and its answer is lost.",
            lambda hands: hands.lose_replies(2),
            _nothing_between,
            _heard_nothing,
        ),
    )
}
"""By name. A restored backup is rehearsed by another command, later."""
