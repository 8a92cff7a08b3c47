"""What every port must do, whatever it speaks: a port's test includes this class and gives it a sandbox.

The oracle is the sandbox's own ledger, never the answer that came back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from recovery.contract.canonical import CanonicalError
from recovery.ports.base import Answer, AnswerKind, Port, Prepared
from recovery.sandbox.server import Sandbox

ATTEMPT = UUID("019adf00-0000-7000-8000-000000000007")
KEY = "refund:ch_3QK9"


class Refund(BaseModel):
    """A refund; ``amount`` in minor units."""

    charge: str = "ch_3QK9"
    amount: Any = 8400
    currency: str = "EUR"


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path / "sandbox.sqlite3") as running:
        yield running


class PortConformance:
    """Send once, tell the truth about what may have left, never raise for the network or the other side."""

    def port(self) -> Port:
        """The port under test, for a refund at the sandbox's payments."""
        raise NotImplementedError

    def base(self, sandbox: Sandbox) -> str:
        """The base address of that dependency."""
        raise NotImplementedError

    def nowhere(self) -> str:
        """A base address where nobody listens."""
        raise NotImplementedError

    def prepared(self, sandbox: Sandbox, **params: Any) -> Prepared:
        return self.port().prepare(Refund(**params), self.base(sandbox), "payments-live")

    def send(self, prepared: Prepared, timeout_s: float = 5.0, key: str = KEY) -> Answer:
        return self.port().send(prepared, key=key, attempt_id=ATTEMPT, token=42, timeout_s=timeout_s)

    def test_it_is_a_port(self) -> None:
        assert isinstance(self.port(), Port)
        assert self.port().declared() == self.port().declared()

    def test_what_is_prepared_is_what_arrives(self, sandbox: Sandbox) -> None:
        """Approvals, R3: the bytes shown are the bytes received, to the last one."""
        prepared = self.prepared(sandbox)
        again = Prepared.from_stored(prepared.as_json(), prepared.body.decode())
        assert again == prepared
        answer = self.send(again)
        assert (answer.kind, answer.status) == (AnswerKind.ANSWERED, 201)
        (entry,) = sandbox.ledger(KEY)
        assert entry["bodies"] == [prepared.body.decode()]
        assert prepared.body == b'{"amount":8400,"charge":"ch_3QK9","currency":"EUR"}'

    def test_key_attempt_and_token_arrive(self, sandbox: Sandbox) -> None:
        """DESIGN section 5: sent with key, attempt id and fencing token."""
        self.send(self.prepared(sandbox))
        (request,) = sandbox.requests(KEY)
        assert request["headers"] == {
            "Idempotency-Key": KEY,
            "Recourse-Attempt": str(ATTEMPT),
            "Recourse-Token": "42",
        }

    def test_preparing_is_pure_and_refuses_what_cannot_be_written(self, sandbox: Sandbox) -> None:
        assert self.prepared(sandbox) == self.prepared(sandbox)
        with pytest.raises(CanonicalError, match=r"\$\.amount"):
            self.prepared(sandbox, amount=float("nan"))
        assert sandbox.ledger() == []

    def test_one_send_is_one_request(self, sandbox: Sandbox) -> None:
        """Invariant 10: one layer sends again, and it is not this one."""
        for reply in ("error500", "refuse", "overload", "drop", "reset"):
            sandbox.dial("payments", reply=reply)
            key = f"refund:{reply}"
            self.send(self.prepared(sandbox), key=key)
            (entry,) = sandbox.ledger(key)
            assert entry["received"] == 1, reply

    @pytest.mark.parametrize("reply", ["drop", "reset"])
    def test_a_lost_answer_is_lost_and_the_effect_is_there(self, sandbox: Sandbox, reply: str) -> None:
        """Fault 12: applied, reply lost: never "failed", never "not sent"."""
        sandbox.dial("payments", reply=reply)
        answer = self.send(self.prepared(sandbox))
        assert (answer.kind, answer.status) == (AnswerKind.LOST, None)
        assert answer.error in ("connection_closed", "reset")
        assert sandbox.applied(KEY) == 1

    def test_a_timeout_is_lost_and_takes_no_longer_than_it_may(self, sandbox: Sandbox) -> None:
        sandbox.dial("payments", reply="slow", delay=5)
        answer = self.send(self.prepared(sandbox), timeout_s=0.3)
        assert (answer.kind, answer.error) == (AnswerKind.LOST, "timeout")
        assert 250 < answer.elapsed_ms < 2_000
        assert sandbox.applied(KEY) == 1

    def test_nobody_there_is_not_sent(self, sandbox: Sandbox) -> None:
        """Fault 14: refused before any byte."""
        prepared = self.port().prepare(Refund(), self.nowhere(), "payments-live")
        answer = self.send(prepared)
        assert answer.kind == AnswerKind.NOT_SENT
        assert answer.error == "connect_failed"
        assert sandbox.ledger() == []

    @pytest.mark.parametrize(("reply", "status"), [("error500", 500), ("refuse", 503), ("reject", 402)])
    def test_an_answer_is_an_answer_whatever_it_says(self, sandbox: Sandbox, reply: str, status: int) -> None:
        """Judging it is the contract's business."""
        sandbox.dial("payments", reply=reply)
        answer = self.send(self.prepared(sandbox))
        assert (answer.kind, answer.status) == (AnswerKind.ANSWERED, status)

    def test_retry_after_is_heard(self, sandbox: Sandbox) -> None:
        sandbox.dial("payments", reply="overload", retry_after=7)
        answer = self.send(self.prepared(sandbox))
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")

    def test_the_same_key_again_is_answered_from_memory(self, sandbox: Sandbox) -> None:
        """One intent, one effect: judged by the ledger."""
        sandbox.dial("payments", reply="drop", times=1)
        first, second = self.send(self.prepared(sandbox)), self.send(self.prepared(sandbox))
        assert (first.kind, second.status) == (AnswerKind.LOST, 201)
        assert second.headers["idempotent-replayed"] == "true"
        assert sandbox.applied(KEY) == 1

    def test_reading_changes_nothing(self, sandbox: Sandbox) -> None:
        self.send(self.prepared(sandbox))
        before = sandbox.ledger()
        answer = self.port().read(f"{self.base(sandbox)}/v1/refunds?reference={KEY}", timeout_s=5)
        assert (answer.kind, answer.status) == (AnswerKind.ANSWERED, 200)
        assert KEY.encode() in answer.body
        assert sandbox.ledger() == before

    def test_reading_where_nobody_is_does_not_raise(self) -> None:
        assert self.port().read(f"{self.nowhere()}/v1/refunds", timeout_s=1).kind == AnswerKind.NOT_SENT
