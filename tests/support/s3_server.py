"""An S3-compatible server in this process, and what a test does behind the back of the program."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
from moto.server import ThreadedMotoServer

from ledger.plan.object_store import ObjectStore

KEYS = {"AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST", "AWS_SECRET_ACCESS_KEY": "canary-7c1e-object-store-secret"}


@dataclass(frozen=True)
class S3Server:
    """One server; each test takes a bucket of its own."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs to find the server and be let in."""
        return {
            **KEYS,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def new_store(self, prefix: str = "") -> ObjectStore:
        """A new, empty bucket."""
        bucket = f"runs-{uuid.uuid4().hex[:12]}"
        self.call("PUT", bucket)
        return ObjectStore.at(f"s3://{bucket}/{prefix}")

    def call(self, method: str, key: str, content: bytes | None = None) -> bytes:
        """One plain request on ``bucket/key``."""
        answer = httpx.request(method, f"{self.url}/{key}", content=content, trust_env=False, timeout=120)
        answer.raise_for_status()
        return answer.content


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server on a free port of loopback until the end of the block."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
