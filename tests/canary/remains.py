"""Everything that commands leave behind, as bytes: files of runs, rows of the ledger, the cluster's own files."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pyarrow.parquet as parquet

_TABLES = """
select format('%I.%I', schemaname, tablename) from pg_catalog.pg_tables
where schemaname not in ('pg_catalog', 'information_schema')
"""


def of_runs(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder, and what stands in those that are packed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield f"file {path.relative_to(folder)}", path.read_bytes()
            if path.suffix == ".parquet":
                yield f"rows of {path.relative_to(folder)}", repr(parquet.read_table(path).to_pylist()).encode()


async def of_ledger(dsn: str) -> AsyncIterator[tuple[str, bytes]]:
    """Every row of every table of the database, each column as it is; then a checkpoint, so that the files have it."""
    connection = await asyncpg.connect(dsn)
    try:
        for record in await connection.fetch(_TABLES):
            for number, row in enumerate(await connection.fetch(f"select * from {record[0]}")):
                yield f"{record[0]} row {number}", b"\n".join(_as_bytes(value) for value in row.values())
        settings = await connection.fetch("select name, setting from pg_catalog.pg_settings")
        yield "settings of the server", repr([tuple(row) for row in settings]).encode()
        await connection.execute("checkpoint")
    finally:
        await connection.close()


def of_cluster(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of the cluster: tables, the log of writes, its settings, its own log."""
    for path in sorted((folder / "data").rglob("*")):
        if path.is_file():
            yield f"cluster {path.relative_to(folder)}", path.read_bytes()
    for path in (*folder.glob("server.log*"), folder / "apply-ledger.json"):
        yield f"cluster {path.name}", path.read_bytes()


def of_process(pid: int, *, environment: bool = True) -> Iterator[tuple[str, bytes]]:
    """What others can see of a process."""
    proc = Path(f"/proc/{pid}")
    yield f"command line of {pid}", (proc / "cmdline").read_bytes()
    if environment:
        yield f"environment of {pid}", (proc / "environ").read_bytes()


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return value.encode() if isinstance(value, str) else json.dumps(value, default=str).encode()
