"""What the contract layer refuses. Each error carries a stable code and the facts its sentence is made
from."""

from __future__ import annotations

from collections.abc import Mapping

from runs.errors import RunsError


class ContractError(RunsError):
    """Base of all refusals of the contract layer: ``code`` is stable, ``facts`` are JSON values."""

    code = "contract_error"
    status = 422


class CanonicalError(ContractError):
    """A value or a text is not what RFC 8785 and I-JSON allow; ``path`` says where, as ``$.a.b[2]``."""

    code = "not_canonical"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}", path=path, why=why)
        self.path = path
        self.why = why


class ParamsInvalid(ContractError):
    """Input does not fit its model; ``fields`` maps each path to what is wrong with it."""

    code = "params_invalid"

    def __init__(self, subject: str, fields: Mapping[str, str]) -> None:
        told = "; ".join(f"{path}: {why}" for path, why in fields.items())
        super().__init__(f"{subject}: {told}", subject=subject, fields=dict(fields))
        self.fields = dict(fields)


class ContractIncomplete(ContractError):
    """An effect contract was used although a field is missing; the system check names the same fields."""

    code = "contract_incomplete"


class KeyInvalid(ContractError):
    """The idempotency key cannot be sent: too long for the promise, empty, or not printable ASCII."""

    code = "key_invalid"


class UnknownOperation(ContractError):
    """No effect contract of this operation (and version) is declared."""

    code = "unknown_operation"


class UnknownRunType(ContractError):
    """No run type of this name (and version) is declared."""

    code = "unknown_run_type"


class UnknownStep(ContractError):
    """The run type has no step of this name."""

    code = "unknown_step"


class UnknownSignal(ContractError):
    """The run type understands no signal of this name."""

    code = "unknown_signal"
