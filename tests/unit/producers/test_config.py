"""The configuration file: accepted unchanged, warned about, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.errors import ConfigurationError, UsageError
from ledger.exit_codes import ExitCode
from producers.config import find_configuration, load_configuration
from producers.config_model import SyncConfiguration
from producers.errors import ConfigurationRefusedError
from tests.support.planning import LIBRARY, NETBOX

SECRET = "s3cr3t-t0ken-value"


def _document(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": "from-test",
        "source": {"name": "jsonl", "settings": {"directory": "rows"}},
        "destination": {"name": "infrahub", "settings": {"url": "http://infrahub.example"}},
        "schema_mapping": [
            {
                "name": "BuiltinTag",
                "mapping": "tags",
                "identifiers": ["name"],
                "fields": [{"name": "name", "mapping": "name"}],
            }
        ],
    }
    return {**document, **changes}


def _write(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "config.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def _field(**field: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": "BuiltinTag",
            "mapping": "tags",
            "identifiers": ["name"],
            "fields": [{"name": "name", "mapping": "name"}, field],
        }
    ]


@pytest.mark.parametrize("path", [NETBOX, LIBRARY], ids=["netbox", "library"])
def test_real_configuration_is_taken_unchanged(path: Path) -> None:
    loaded = load_configuration(path)
    assert loaded.warnings == ()
    assert loaded.config.flags.value == 0
    assert all(entry.mapping for entry in loaded.config.schema_mapping)


def test_real_configuration_has_all_its_entries_and_kinds() -> None:
    config = load_configuration(NETBOX).config
    assert (len(config.schema_mapping), len(config.kinds)) == (47, 43)
    assert len(load_configuration(LIBRARY).config.kinds) == 5


def test_g11_unsupported_keys_are_refused_by_name_all_at_once(tmp_path: Path) -> None:
    document = _document(
        incremental={"full_resync_every": 10},
        adapters_path=["./adapters"],
        store={"type": "redis"},
        source={"name": "jsonl", "adapter": "mine:Adapter"},
        destination={"name": "nautobot"},
    )
    with pytest.raises(ConfigurationRefusedError) as caught:
        load_configuration(_write(tmp_path, document))
    refused = " ".join(finding.checked for finding in caught.value.findings)
    for key in ("incremental", "adapters_path", "store.type", "source.adapter", "destination.name"):
        assert key in refused
    assert caught.value.exit_code is ExitCode.REFUSED
    assert {finding.name for finding in caught.value.findings} == {"UnsupportedConfigurationKeyError"}


def test_harmless_forms_of_unsupported_keys_are_accepted(tmp_path: Path) -> None:
    document = _document(store={"type": "local"}, adapters_path=[], source={"name": "jsonl", "adapter": "jsonl"})
    assert load_configuration(_write(tmp_path, document)).config.name == "from-test"


def test_unknown_keys_are_warned_about_at_every_level_and_never_refused(tmp_path: Path) -> None:
    document = _document(description="a file", dyffsync_flags=["SKIP_UNMATCHED_DST"])
    document["destination"]["colour"] = "green"
    document["schema_mapping"] = _field(name="description", mapping="description", comment="why")
    document["schema_mapping"][0]["owner"] = "me"
    loaded = load_configuration(_write(tmp_path, document))
    for key in (
        "description",
        "dyffsync_flags (did you mean diffsync_flags?)",
        "destination.colour",
        "schema_mapping.0.owner",
        "schema_mapping.0.fields.1.comment",
    ):
        assert f"unknown key {key}: ignored" in loaded.warnings
    assert loaded.config.diffsync_flags == []


@pytest.mark.rules("G12", "A73")
def test_g12_token_in_settings_is_accepted_with_a_warning_and_never_shown(tmp_path: Path) -> None:
    document = _document()
    document["destination"]["settings"]["token"] = SECRET
    document["source"]["settings"]["token"] = SECRET
    loaded = load_configuration(_write(tmp_path, document))
    assert any("INFRAHUB_API_TOKEN" in warning for warning in loaded.warnings)
    shown = f"{loaded!r} {loaded.config!r} {loaded.config.model_dump()!r} {loaded.warnings} {loaded.config_version}"
    assert SECRET not in shown


@pytest.mark.rules("G12")
def test_g12_a_credential_cannot_be_an_override_because_overrides_are_recorded(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(_write(tmp_path, _document()), source_settings={"token": SECRET})
    assert SECRET not in str(caught.value)


def test_g12_broken_yaml_is_named_by_its_line_without_its_text(tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    path.write_text(f"name: x\ntoken: '{SECRET}\n  broken: [")
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(path)
    assert SECRET not in str(caught.value)


@pytest.mark.rules("A71", "A72")
def test_overrides_and_settings_are_inside_the_configuration_version(tmp_path: Path) -> None:
    path = _write(tmp_path, _document())
    plain = load_configuration(path).config_version
    assert load_configuration(path).config_version == plain
    day0 = load_configuration(path, source_settings={"directory": "day0"})
    day1 = load_configuration(path, source_settings={"directory": "day1"})
    assert len({plain, day0.config_version, day1.config_version}) == 3
    assert day0.config.source.settings["directory"] == "day0"
    rotated = _document()
    rotated["destination"]["settings"]["token"] = "another"
    assert load_configuration(_write(tmp_path, rotated)).config_version != plain


@pytest.mark.rules("A71")
def test_the_place_of_the_file_is_not_configuration(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first = load_configuration(_write(tmp_path, _document()))
    second = load_configuration(_write(elsewhere, _document()))
    assert first.config_version == second.config_version


@pytest.mark.parametrize("value", [False, 0, "", None])
def test_static_is_tested_for_presence_not_for_truth(tmp_path: Path, value: Any) -> None:
    loaded = load_configuration(_write(tmp_path, _document(schema_mapping=_field(name="description", static=value))))
    field = loaded.config.schema_mapping[0].fields[1]
    assert field.has_static
    assert field.static == value


def test_flags_are_taken_by_name_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    good = load_configuration(_write(tmp_path, _document(diffsync_flags=["SKIP_UNMATCHED_DST"])))
    assert good.config.flags.name == "SKIP_UNMATCHED_DST"
    ineffective = load_configuration(_write(tmp_path, _document(diffsync_flags=["CONTINUE_ON_FAILURE"])))
    assert any("CONTINUE_ON_FAILURE" in warning for warning in ineffective.warnings)
    with pytest.raises(ConfigurationRefusedError, match="SKIP_EVERYTHING"):
        load_configuration(_write(tmp_path, _document(diffsync_flags=["SKIP_EVERYTHING"])))


def test_g11_an_order_that_leaves_mapped_kinds_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationRefusedError) as caught:
        load_configuration(_write(tmp_path, _document(order=["LocationSite", "LocationSite"])))
    found = " ".join(finding.found for finding in caught.value.findings)
    assert "BuiltinTag" in found
    assert "LocationSite several times" in found


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"mapping": None}, "a source endpoint"),
        ({"fields": []}, "at least one field"),
        ({"fields": [{"name": "name"}]}, "mapping or static"),
        ({"fields": [{"name": "name", "mapping": "a"}, {"name": "name", "mapping": "b"}]}, "each field once"),
        ({"filters": [{"field": "a", "operation": "regex", "value": "("}]}, "a regular expression"),
        ({"filters": [{"field": "a", "operation": ">", "value": "much"}]}, "a whole number"),
        ({"filters": [{"field": "a", "operation": "is_ip_within", "value": "nowhere"}]}, "a network"),
        ({"transforms": [{"field": "a", "expression": "{{ a | nosuchfilter }}"}]}, "a Jinja2 expression"),
    ],
)
def test_g11_faults_of_entries_are_named(tmp_path: Path, entry: dict[str, Any], expected: str) -> None:
    document = _document()
    document["schema_mapping"][0] |= entry
    with pytest.raises(ConfigurationRefusedError) as caught:
        load_configuration(_write(tmp_path, document))
    assert any(expected in finding.expected for finding in caught.value.findings)


def test_g11_all_shape_faults_are_listed_and_nothing_is_coerced(tmp_path: Path) -> None:
    document = _document(name="../elsewhere", source={"name": 5})
    document["schema_mapping"][0]["filters"] = [{"field": "a", "operation": "almost"}]
    with pytest.raises(ConfigurationRefusedError) as caught:
        load_configuration(_write(tmp_path, document))
    checked = " ".join(finding.checked for finding in caught.value.findings)
    for key in ("name", "source.name", "schema_mapping.0.filters.0.operation"):
        assert key in checked


def test_a_key_that_is_written_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    path.write_text("name: a\nname: b\n")
    with pytest.raises(ConfigurationError, match="written twice"):
        load_configuration(path)


@pytest.mark.parametrize("text", ["- a\n- b\n", "", "1: 2\n"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="a mapping with text keys"):
        load_configuration(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a readable file"):
        load_configuration(tmp_path / "nowhere.yml")


def test_files_are_found_by_name_below_a_directory(tmp_path: Path) -> None:
    for folder, name in (("a", "one"), ("b", "two")):
        (tmp_path / folder).mkdir()
        _write(tmp_path / folder, _document(name=name))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "config.yml").write_text("{broken")
    assert find_configuration(tmp_path, "two") == tmp_path / "b" / "config.yml"
    with pytest.raises(UsageError):
        find_configuration(tmp_path, "three")
    (tmp_path / "d").mkdir()
    _write(tmp_path / "d", _document(name="one"))
    with pytest.raises(UsageError, match="exactly one"):
        find_configuration(tmp_path, "one")


def test_differing_identifiers_of_one_kind_are_warned_about(tmp_path: Path) -> None:
    document = _document()
    entry = document["schema_mapping"][0]
    document["schema_mapping"] = [entry, {**entry, "identifiers": ["description"]}]
    assert any("identifiers differ" in warning for warning in load_configuration(_write(tmp_path, document)).warnings)


def test_model_refuses_an_unusable_sync_name() -> None:
    with pytest.raises(ValueError, match="name"):
        SyncConfiguration.model_validate(_document(name="a/b"))


@pytest.mark.rules("G11")
def test_g11_a_misspelt_key_is_named_beside_what_is_missing_for_it(tmp_path: Path) -> None:
    document = _document()
    (entry,) = document["schema_mapping"] = _field(name="description", maping="description")
    entry["maping"] = entry.pop("mapping")
    with pytest.raises(ConfigurationRefusedError) as caught:
        load_configuration(_write(tmp_path, document))
    found = {finding.checked.rsplit(".", 1)[-1]: finding.found for finding in caught.value.findings}
    assert found == {
        "mapping": "none; unknown there: maping (did you mean mapping?)",
        "description": "neither; unknown there: maping (did you mean mapping?)",
    }


@pytest.mark.rules("G11")
def test_g11_so_is_one_for_which_the_format_misses_a_key(tmp_path: Path) -> None:
    document = _document()
    document["schema_mapping"][0]["nmae"] = document["schema_mapping"][0].pop("name")
    document["schema_mapping"].append("no table")
    with pytest.raises(ConfigurationRefusedError) as caught:
        load_configuration(_write(tmp_path, document))
    first = caught.value.findings[0]
    assert first.checked == "configuration key schema_mapping.0.name"
    assert first.found.endswith("unknown there: nmae (did you mean name?)")
