"""Manifests and accounts that are refused, each under a right checksum where the attacker can make one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.hostile.artifact_corpus_spoils import (
    TAG_LINE,
    Hostile,
    on_artifact,
    on_bytes,
    with_coverage,
    with_coverage_bytes,
    with_manifest,
    with_operations,
)
from tests.hostile.artifact_files import COVERAGE, MANIFEST, lines_of, records_of, sealed
from tests.hostile.artifact_judge import CANARY


def _covered(name: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[list[Any]], list[Any]]:
    """Change the first coverage line of this action."""

    def spoil(lines: list[Any]) -> list[Any]:
        line = next(line for line in lines if line["action"] == name)
        change(line)
        return lines

    return spoil


def _unchanged_last(lines: list[Any]) -> list[Any]:
    return sorted(lines, key=lambda line: bool(line["action"] == "none"))


_ONLY_READ = "PlanFormatApplyUnsupportedError"

MANIFESTS = (
    Hostile("no manifest", lambda run: (run / MANIFEST).unlink(), "format_version"),
    Hostile("an empty manifest", on_bytes(MANIFEST, lambda data: b""), "format_version"),
    Hostile("half a manifest", on_bytes(MANIFEST, lambda data: data[: len(data) // 2]), "format_version"),
    Hostile("a manifest in UTF-16", on_bytes(MANIFEST, lambda data: data.decode().encode("utf-16")), "format_version"),
    Hostile(
        "a manifest with a byte order mark", on_bytes(MANIFEST, lambda data: b"\xef\xbb\xbf" + data), "format_version"
    ),
    Hostile("a manifest that is a list", on_bytes(MANIFEST, lambda data: b"[]"), "format_version"),
    Hostile("a manifest key twice", on_bytes(MANIFEST, lambda data: b'{"run_id":"x",' + data[1:]), "format_version"),
    Hostile("a manifest that is deep", on_bytes(MANIFEST, lambda data: b'{"a":' * 100_000 + data), "format_version"),
    Hostile("a format of tomorrow", with_manifest(format_version=4), "format_version"),
    Hostile("a format of text", with_manifest(format_version="3"), "format_version"),
    Hostile("a format of 3.0", with_manifest(format_version=3.0), "format_version"),
    Hostile("a format of true", with_manifest(format_version=True), "format_version"),
    Hostile("the format that is only read", with_operations(TAG_LINE + b"\n", format_version=2), _ONLY_READ),
    Hostile("another run", with_manifest(run_id="20260101T0000-00000000"), "run_binding"),
    Hostile("a run that leads elsewhere", with_manifest(run_id="../../etc"), "run_binding"),
    Hostile("another configuration", with_manifest(config_version="other"), "config_version"),
    Hostile("a configuration of escapes", with_manifest(config_version="\x1b[31m"), "manifest"),
    Hostile("a count too high", with_manifest(operations_count=7), "operations"),
    Hostile("a count of 10^400", with_manifest(operations_count=10**400), "operations"),
    Hostile("a count of true", with_manifest(operations_count=True), "operations"),
    Hostile("another checksum", with_manifest(plan_checksum="0" * 64), "plan_checksum"),
    Hostile("no checksum", with_manifest(plan_checksum=...), "plan_checksum"),
    Hostile("a time without a zone", with_manifest(created_at="2026-07-26T18:04:11"), "manifest"),
    Hostile("a time that is none", with_manifest(created_at="yesterday"), "manifest"),
    Hostile(
        "an address with a password",
        with_manifest(destination_binding={"branch": "main", "url": f"http://u:{CANARY}@h:80"}),
        "manifest",
    ),
    Hostile(
        "an address with a token",
        with_manifest(destination_binding={"branch": "main", "url": f"http://h/?token={CANARY}"}),
        "manifest",
    ),
    Hostile(
        "a token beside the address",
        with_manifest(destination_binding={"branch": "main", "url": "http://h", "token": CANARY}),
        "manifest",
    ),
    Hostile(
        "another destination",
        with_manifest(destination_binding={"branch": "main", "url": "http://\u202eevil:8000"}),
        "DestinationBindingMismatchError",
    ),
    Hostile(
        "an address of 100 000 letters",
        with_manifest(destination_binding={"branch": "main", "url": "http://" + "h" * 100_000}),
        "DestinationBindingMismatchError",
    ),
    Hostile("half of the registry", with_manifest(config_id="x"), "manifest"),
    Hostile("snapshots that are no list", with_manifest(source_snapshot={}), "source_snapshot"),
    Hostile("a checksum that is not the committed one", with_manifest(note="x"), "CommittedChecksumMismatchError"),
)

ACCOUNTS = (
    Hostile("no coverage file", lambda run: (run / COVERAGE).unlink(), "coverage"),
    Hostile("a coverage byte", on_bytes(COVERAGE, lambda data: data.replace(b'"kind"', b'"kimd"', 1)), "coverage"),
    Hostile("coverage that nothing vouches for", with_manifest(coverage=...), "coverage"),
    Hostile("other counts", with_manifest(coverage={"digest": "0" * 64, "counts": {}}), "coverage"),
    Hostile("counts of text", with_manifest(coverage="all of them"), "coverage"),
    Hostile(
        "an account that is no JSON",
        with_coverage_bytes(lambda data: data.replace(b"no name", b"no\xffname")),
        "InvalidUtf8Error",
    ),
    Hostile(
        "U+0000 in an account",
        with_coverage_bytes(lambda data: data.replace(b"no name", b"no\\u0000name")),
        "NullCharacterError",
    ),
    Hostile(
        "another spelling of a line",
        with_coverage_bytes(lambda data: data.replace(b"no name", b"no \\u006eame")),
        "NonCanonicalLineError",
    ),
    Hostile("lines out of order", with_coverage(lambda lines: lines[::-1]), "CoverageInvalidError"),
    Hostile("an unchanged resource out of order", with_coverage(_unchanged_last), "CoverageInvalidError"),
    Hostile("a line twice", with_coverage(lambda lines: [lines[0], *lines]), "CoverageInvalidError"),
    Hostile(
        "a line too few",
        with_coverage(lambda lines: [line for line in lines if line["action"] != "update"]),
        "CoverageInvalidError",
    ),
    Hostile(
        "an operation that does not exist",
        on_artifact(lambda start: sealed(replace(start, operations=lines_of(records_of(start.operations)[1:])))),
        "CoverageInvalidError",
    ),
    Hostile(
        "an id of another resource",
        with_coverage(_covered("create", lambda line: line.update(identity={"name": "x"}))),
        "CoverageInvalidError",
    ),
    Hostile(
        "another action than the operation's",
        with_coverage(_covered("create", lambda line: line.update(action="update"))),
        "CoverageInvalidError",
    ),
    Hostile(
        "an unknown key in a line",
        with_coverage(_covered("none", lambda line: line.update(note="x"))),
        "CoverageInvalidError",
    ),
    Hostile(
        "a skip without a reason",
        with_coverage(_covered("skip", lambda line: line.pop("reason"))),
        "CoverageInvalidError",
    ),
    Hostile(
        "shown as one value, written as another",
        with_coverage(_covered("update", lambda line: line["differences"]["description"].update(desired="harmless"))),
        "CoverageInvalidError",
    ),
    Hostile(
        "shown as a field that is not written",
        with_coverage(_covered("update", lambda line: line["differences"].update(name2={"desired": 1, "observed": 2}))),
        "CoverageInvalidError",
    ),
    Hostile(
        "shown with another object's id",
        with_coverage(_covered("update", lambda line: line.update(destination_id="another"))),
        "CoverageInvalidError",
    ),
)
