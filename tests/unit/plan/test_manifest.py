"""The manifest: its fields, what it keeps, what it refuses, and what the checksum covers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.plan.checksum import artifact_digest, checksummed_body, plan_checksum
from ledger.plan.decode import decode_json
from ledger.plan.errors import ManifestInvalidError, TornPlanArtifactError, UnrecognisedPlanFormatError
from ledger.plan.manifest import decode_manifest, parse_manifest
from ledger.plan.model import READABLE_FORMATS
from tests.support.plans import manifest_document

SNAPSHOT = {"path": "A/BuiltinTag.parquet", "digest": "0" * 64, "row_count": 3}
REGISTRY = {
    "config_id": "config-001",
    "registry_version": 1,
    "package_checksum": "a" * 64,
    "schema_fingerprint": "b" * 64,
}
BINDING = {"branch": "main", "url": "http://infrahub.example:8000"}


@pytest.mark.rules("A57", "A58", "A59", "A60", "A61", "A62", "A63", "A66")
@pytest.mark.parametrize(
    "key",
    ["run_id", "created_at", "config_version", "source_snapshot", "operations_count", "delete_operations_computed",
     "plan_checksum"],
)  # fmt: skip
def test_each_field_of_the_manifest_is_required_and_named(key: str) -> None:
    document = manifest_document(b"")
    del document[key]

    with pytest.raises(ManifestInvalidError, match=key):
        parse_manifest(document)


WRONG: dict[str, dict[str, Any]] = {
    "a count as text": {"operations_count": "1"},
    "a count as a boolean": {"operations_count": True},
    "a negative count": {"operations_count": -1},
    "deletes as a number": {"delete_operations_computed": 1},
    "an upper-case checksum": {"plan_checksum": "A" * 64},
    "a short checksum": {"plan_checksum": "a" * 63},
    "an empty configuration version": {"config_version": ""},
    "a configuration version beyond ASCII": {"config_version": "é"},
    "a configuration version with a line break": {"config_version": "a\n"},
    "a time without a zone": {"created_at": "2026-07-26T18:04:11"},
    "a time in another zone": {"created_at": "2026-07-26T18:04:11+02:00"},
    "no time": {"created_at": "yesterday"},
    "snapshots in another order": {"source_snapshot": [{**SNAPSHOT, "path": "A/b"}, {**SNAPSHOT, "path": "A/a"}]},
    "one snapshot twice": {"source_snapshot": [SNAPSHOT, SNAPSHOT]},
    "a snapshot with an unknown key": {"source_snapshot": [{**SNAPSHOT, "size": 1}]},
    "a row count as text": {"source_snapshot": [{**SNAPSHOT, "row_count": "3"}]},
    "an empty path": {"source_snapshot": [{**SNAPSHOT, "path": ""}]},
    "a binding with a token": {"destination_binding": {**BINDING, "token": "hunter2"}},
    "a binding with a password": {"destination_binding": {**BINDING, "url": "http://admin:hunter2@infrahub"}},
    "a binding with a user": {"destination_binding": {**BINDING, "url": "http://hunter2@infrahub"}},
    "a binding with a raw query": {"destination_binding": {**BINDING, "url": "http://infrahub/?token=hunter2"}},
    "a binding with a fragment": {"destination_binding": {**BINDING, "url": "http://infrahub/#hunter2"}},
    "a binding that is no address": {"destination_binding": {**BINDING, "url": "hunter2"}},
    "a binding with a broken address": {"destination_binding": {**BINDING, "url": "http://[hunter2"}},
    "coverage without counts": {"coverage": {"digest": "0" * 64}},
    "coverage with a negative count": {"coverage": {"digest": "0" * 64, "counts": {"create": -1}}},
}


@pytest.mark.rules("A59", "A60", "A61", "A62", "A63", "A64", "A66", "C24", "G12")
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_g12_a_wrong_field_is_named_and_its_value_is_not_shown(change: dict[str, Any]) -> None:
    with pytest.raises(ManifestInvalidError) as caught:
        parse_manifest({**manifest_document(b""), **change})

    assert next(iter(change)) in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.rules("G11")
def test_g11_every_wrong_field_is_named_at_once() -> None:
    with pytest.raises(ManifestInvalidError) as caught:
        parse_manifest({**manifest_document(b""), "operations_count": "1", "config_version": "", "created_at": 1})

    assert all(name in caught.value.found for name in ("operations_count", "config_version", "created_at"))


@pytest.mark.rules("A60")
def test_a_configuration_version_is_opaque() -> None:
    for version in ("1", "a b", "sha256:abc", "~!@#$%^&*()"):
        assert parse_manifest(manifest_document(b"", config_version=version)).config_version == version


@pytest.mark.rules("A64", "A65", "C25", "C26")
def test_a_binding_may_be_absent_or_hold_the_fingerprint_of_a_query() -> None:
    assert parse_manifest(manifest_document(b"", destination_binding=...)).destination_binding is None
    url = "http://infrahub/?query-sha256=" + "0" * 64
    found = parse_manifest(manifest_document(b"", destination_binding={**BINDING, "url": url})).destination_binding
    assert found is not None
    assert found.normalised().url == found.normalised().normalised().url
    assert url.split("?")[1] in found.normalised().url


REGISTRY_FAULTS = {
    **{f"without {name}": {k: v for k, v in REGISTRY.items() if k != name} for name in REGISTRY},
    "config_id alone": {"config_id": "config-001"},
    "a short fingerprint": {**REGISTRY, "schema_fingerprint": "b" * 63},
    "a fingerprint alone that is no digest": {"schema_fingerprint": "x"},
    "a version as text": {**REGISTRY, "registry_version": "1"},
}


@pytest.mark.rules("A67", "A92")
@pytest.mark.parametrize("keys", REGISTRY_FAULTS.values(), ids=REGISTRY_FAULTS)
def test_the_keys_of_a_registry_come_all_or_none_and_with_a_fingerprint(keys: dict[str, Any]) -> None:
    with pytest.raises(ManifestInvalidError):
        parse_manifest(manifest_document(b"", **keys))


@pytest.mark.rules("A67", "A92")
@pytest.mark.parametrize("keys", [REGISTRY, {"schema_fingerprint": "b" * 64}, {}])
def test_whole_registry_keys_are_taken(keys: dict[str, Any]) -> None:
    assert parse_manifest(manifest_document(b"", **keys)).config_id == keys.get("config_id")


@pytest.mark.rules("A67", "C30")
def test_an_unknown_key_is_kept_and_inside_the_checksum() -> None:
    document = manifest_document(b"", note={"by": ["me"]})
    manifest = parse_manifest(document)

    assert manifest.model_extra == {"note": {"by": ["me"]}}
    assert plan_checksum(document, b"") != plan_checksum({**document, "note": {"by": ["you"]}}, b"")
    assert b'"note":{"by":["me"]}' in checksummed_body(document)


@pytest.mark.rules("A58", "A59", "A66", "A68", "C29")
def test_three_keys_are_removed_from_the_checksum_and_nothing_else() -> None:
    document = manifest_document(b"x\n", source="netbox", coverage={"digest": "0" * 64, "counts": {}}, **REGISTRY)
    whole = plan_checksum(document, b"x\n")

    for key in document:
        without = {name: value for name, value in document.items() if name != key}
        excluded = key in ("plan_checksum", "run_id", "created_at")
        assert (plan_checksum(without, b"x\n") == whole) is excluded, key
        assert (plan_checksum({**document, key: None}, b"x\n") == whole) is excluded, key


@pytest.mark.rules("A66", "A69")
def test_there_is_no_separator_between_body_and_operations() -> None:
    document = manifest_document(b"")
    body = checksummed_body(document)

    assert plan_checksum(document, b"tail") == artifact_digest(body, b"tail") == artifact_digest(body + b"ta", b"il")


@pytest.mark.rules("A8", "A86")
@pytest.mark.parametrize(
    "data", [None, b"", b"{", b"[]", b"1", b"{}", b'{"a":1}', b'{"format_version":3,"format_version":3}']
)
def test_an_absent_or_malformed_manifest_is_torn(data: bytes | None) -> None:
    with pytest.raises(TornPlanArtifactError) as caught:
        decode_manifest(data)

    assert len(str(caught.value)) < 500


@pytest.mark.rules("A3", "A11", "C21")
@pytest.mark.parametrize("version", ["1", "4", "0", "-3", "3.0", "true", "null", '"3"', "[3]", "{}", "9" * 640])
def test_an_unknown_format_version_has_its_own_verdict(version: str) -> None:
    with pytest.raises(UnrecognisedPlanFormatError) as caught:
        decode_manifest(f'{{"format_version":{version}}}'.encode())

    assert "2 or 3" in str(caught.value)
    assert "plan.parquet" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.rules("A3", "A57")
def test_formats_2_and_3_are_read() -> None:
    assert {2, 3} == READABLE_FORMATS
    for version in (2, 3):
        assert decode_manifest(f'{{"format_version":{version}}}'.encode()) == {"format_version": version}


@pytest.mark.rules("A66")
def test_the_spelling_of_the_manifest_is_not_part_of_the_checksum() -> None:
    document = manifest_document(b"")
    spelled = json.dumps(dict(reversed(document.items())), indent=3).encode() + b"\n"

    assert plan_checksum(decode_json(spelled, what="manifest"), b"") == document["plan_checksum"]
