"""Where things lie below the data folder (`--data`, `var` by default)."""

import os
from dataclasses import dataclass
from pathlib import Path

from console.stack.errors import StackError

PROJECT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Layout:
    """Paths below one data folder. `data` is absolute."""

    data: Path

    @classmethod
    def at(cls, data: str | os.PathLike[str]) -> "Layout":
        """The layout of a folder; a relative one is taken from the project's folder, wherever one stands."""
        return cls((PROJECT / Path(data).expanduser()).resolve())

    @property
    def postgres(self) -> Path:
        return self.data / "postgres"

    @property
    def valkey(self) -> Path:
        return self.data / "valkey"

    @property
    def secrets(self) -> Path:
        return self.data / "secrets"

    @property
    def run(self) -> Path:
        """Sockets and what exists only while the stack runs."""
        return self.data / "run"

    @property
    def drills(self) -> Path:
        """What a drill has laid at failpoints of live processes."""
        return self.run / "drills"

    @property
    def log(self) -> Path:
        return self.data / "log"

    @property
    def static(self) -> Path:
        return self.data / "static"

    @property
    def lock(self) -> Path:
        return self.data / "lock"

    @property
    def environment(self) -> Path:
        """The environment of the running stack's processes, as JSON (0600)."""
        return self.data / "env.json"

    def make(self) -> None:
        """Create the folders, closed to others. Raises StackError where the rights are missing."""
        try:
            self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
            for folder in (self.secrets, self.run, self.log, self.static, self.valkey):
                folder.mkdir(exist_ok=True, mode=0o700)
                folder.chmod(0o700)
        except OSError as error:
            raise StackError(
                f"The data folder {self.data} cannot be used: {error.strerror} ({error.filename})."
                " Give this account the right to write there, or choose another with --data."
            ) from error
        # Root may write anywhere by mode, so this asks the kernel and not the mode bits.
        if not os.access(self.data, os.R_OK | os.W_OK | os.X_OK):
            raise StackError(
                f"The data folder {self.data} cannot be used: this account may not write there."
                " Change its rights, or choose another with --data."
            )


def write_private(path: Path, text: str) -> None:
    """Write a file that only this account reads (0600), whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
