"""The archive as S3, over its wire: a stand-in that keeps what it is sent. It checks no signature."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from runs import clock
from runs.checkpoints import archive, load, moving
from runs.models import Checkpoint
from tests.runs import make
from tests.runs.make import World
from tests.runs.test_checkpoint_tiers import aged


class Bucket(BaseHTTPRequestHandler):
    """PUT and GET of objects by path, and their deletion."""

    protocol_version = "HTTP/1.1"
    kept: dict[str, bytes]

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""

    def do_PUT(self) -> None:
        self.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200)

    def do_GET(self) -> None:
        found = self.kept.get(self.path)
        self._answer(404 if found is None else 200, found or b"")

    def do_POST(self) -> None:
        """DeleteObjects: several keys at once, in XML."""
        told = self.rfile.read(int(self.headers["Content-Length"])).decode()
        bucket = self.path.partition("?")[0]
        keys = re.findall("<Key>(.*?)</Key>", told)
        for key in keys:
            self.kept.pop(f"{bucket}/{key}", None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Tue, 01 Dec 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[dict[str, bytes]]:
    """What the bucket holds, by path."""
    kept: dict[str, bytes] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Bucket,), {"kept": kept}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)
    settings.RECOURSE_ARCHIVE_URL = "s3://safe/recourse"
    archive._store.cache_clear()
    yield kept
    archive._store.cache_clear()
    server.shutdown()
    server.server_close()
    thread.join()


def test_old_checkpoints_are_kept_in_a_bucket_and_read_from_there(world: World, bucket: dict[str, bytes]) -> None:
    run = aged(world)
    assert moving.move_due(clock.now()) == (4, 0)
    paths = {f"/safe/recourse/{row.address}" for row in Checkpoint.objects.filter(run_id=run)}
    assert set(bucket) == paths
    make.forget(run)
    assert load.at(world.ws, run, 4).seq == 4
    address = Checkpoint.objects.get(run_id=run, seq=1).address
    archive.drop(address)
    assert archive.get(address) is None


def test_what_reads_back_differently_stays_in_postgresql(
    world: World, bucket: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that says yes and keeps something else must not be the only place."""
    run = aged(world)
    real = archive.put
    monkeypatch.setattr(archive, "put", lambda address, blob: real(address, blob[:-1]))
    with pytest.raises(archive.Away, match="reads back differently"):
        moving.move_due(clock.now())
    assert not Checkpoint.objects.filter(run_id=run, sealed=None).exists()
    assert bucket
