"""How a checkpoint is kept changes; what it says does not. Each change is guarded by the digest it starts from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from uuid import UUID

from django.db import connection, transaction
from psycopg import sql


def mend(id: int, digest: str, good: bytes) -> bool:
    """Replace damaged bytes by those with the digest that the row has always had. True if it was there to mend."""
    assert hashlib.sha256(good).hexdigest() == digest, "only the very bytes mend a checkpoint"
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_checkpoint SET sealed = %s WHERE id = %s AND digest = %s AND sealed IS NOT NULL",
            [good, id, digest],
        )
        return bool(cursor.rowcount == 1)


def moved(places: Iterable[tuple[int, str, str]]) -> bool:
    """(id, digest, address): these are in the archive now, their bytes leave PostgreSQL. All of them or none."""
    with transaction.atomic(), connection.cursor() as cursor:
        for id, digest, address in places:
            cursor.execute(
                "UPDATE runs_checkpoint SET sealed = NULL, address = %s"
                " WHERE id = %s AND digest = %s AND sealed IS NOT NULL",
                [address, id, digest],
            )
            if cursor.rowcount != 1:
                transaction.set_rollback(True)
                return False
    return True


def resealed(id: int, digest: str, blob: bytes, key: str, address: str = "") -> bool:
    """The same checkpoint under another key: in PostgreSQL, or at ``address``. False if it changed meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_checkpoint SET sealed = %s, digest = %s, key = %s, size = %s, address = %s"
            " WHERE id = %s AND digest = %s AND (sealed IS NULL) = %s",
            [
                None if address else blob,
                hashlib.sha256(blob).hexdigest(),
                key,
                len(blob),
                address,
                id,
                digest,
                bool(address),
            ],
        )
        return bool(cursor.rowcount == 1)


def rewrapped(workspace: UUID, old: str, wrapped: bytes, key: str) -> bool:
    """A workspace's field key under another key; ``old``: the one it is under. False if it changed meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_fieldkey SET wrapped = %s, key = %s WHERE workspace_id = %s AND key = %s",
            [wrapped, key, workspace, old],
        )
        return bool(cursor.rowcount == 1)


def secret(table: str, column: str, id: UUID, old: str, new: str) -> bool:
    """A sealed secret in a column under another key. False if it changed meanwhile."""
    names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
    statement = sql.SQL("UPDATE {table} SET {column} = %s WHERE id = %s AND {column} = %s").format(**names)
    with connection.cursor() as cursor:
        cursor.execute(statement, [new, id, old])
        return bool(cursor.rowcount == 1)


def named(id: int, digest: str, key: str) -> bool:
    """Note which key sealed a checkpoint whose row does not say it yet."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_checkpoint SET key = %s WHERE id = %s AND digest = %s", [key, id, digest])
        return bool(cursor.rowcount == 1)
