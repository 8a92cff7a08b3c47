"""Under which identity PostgreSQL runs: it refuses root.

An ordinary account runs it as itself. Root runs it in a user namespace of its own, in which root's files
belong to an ordinary user, so that nothing on disk has to change its owner. Where the kernel refuses those,
it runs as an unprivileged account, if that one may walk to the data folder and to the binaries.
"""

import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from console.stack.errors import StackError


@dataclass(frozen=True)
class Identity:
    """What to put before a command line of PostgreSQL, and which uid its files belong to."""

    prefix: tuple[str, ...]
    uid: int
    gid: int
    dropped: bool = False

    def own(self, *folders: Path) -> None:
        """Give folders to this identity, with all they hold: at the first start, and after a change."""
        for folder in folders:
            if os.geteuid() != 0 or not folder.exists() or folder.stat().st_uid == self.uid:
                continue
            for path in [folder, *folder.rglob("*")]:
                os.chown(path, self.uid, self.gid, follow_symlinks=False)


def identity(paths: Iterable[Path]) -> Identity:
    """The identity for this account; `paths` must be within its reach. StackError when there is none."""
    if os.geteuid() != 0:
        return Identity((), os.geteuid(), os.getegid())
    if user_namespaces_work():
        inner = _ordinary_user()
        return Identity(("unshare", "-U", f"--map-user={inner.pw_uid}", f"--map-group={inner.pw_gid}"), uid=0, gid=0)
    return _dropped(paths)


def user_namespaces_work() -> bool:
    """Whether the kernel lets this process make a user namespace; many containers refuse."""
    inner = _ordinary_user()
    command = ["unshare", "-U", f"--map-user={inner.pw_uid}", f"--map-group={inner.pw_gid}", "true"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _ordinary_user() -> pwd.struct_passwd:
    """An account with a name and without rights: `initdb` looks the name up and gives up without one."""
    known = pwd.getpwall()
    for wanted in ("postgres", "nobody"):
        for account in known:
            if account.pw_name == wanted and account.pw_uid != 0:
                return account
    for account in known:
        if account.pw_uid != 0:
            return account
    raise StackError(
        "PostgreSQL does not run as root and this machine knows no other account."
        " Start Recourse as an ordinary user: useradd recourse"
    )


def _dropped(paths: Iterable[Path]) -> Identity:
    account = _ordinary_user()
    for path in paths:
        for folder in [*reversed(path.parents), path]:
            if folder.exists() and not _may_walk(folder.stat(), account):
                raise StackError(
                    "PostgreSQL does not run as root, this machine refuses user namespaces, and the account"
                    f" {account.pw_name} may not walk through {folder}."
                    " Start Recourse as an ordinary user, or put it into a folder that is open to all."
                )
    if shutil.which("setpriv") is None:
        raise StackError(
            "PostgreSQL does not run as root, this machine refuses user namespaces, and the command setpriv"
            " (Debian package util-linux) is missing. Install it, or start Recourse as an ordinary user."
        )
    ids = (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
    # The kernel forgets the parent-death signal when the uid changes, so it is set again here.
    prefix = ("setpriv", *ids, "--pdeathsig", "INT", "--")
    return Identity(prefix, account.pw_uid, account.pw_gid, dropped=True)


def _may_walk(status: os.stat_result, account: pwd.struct_passwd) -> bool:
    if status.st_uid == account.pw_uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.pw_gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)
