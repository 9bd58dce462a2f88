"""The configuration version: everything but the location, and of the values only a digest."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ledger.errors import ConfigurationError
from ledger.plan.config_version import config_version, require_config_version
from ledger.plan.errors import UnserializablePayloadValueError

DOCUMENT: dict[str, Any] = {
    "name": "from-netbox",
    "directory": "/home/ci/checkout",
    "source": {"name": "netbox", "settings": {"url": "http://netbox", "token": "hunter2", "directory": "day0"}},
    "schema_mapping": [{"name": "BuiltinTag", "fields": [{"name": "name", "static": False}]}],
}


@pytest.mark.rules("A71", "A73")
def test_a_version_is_a_digest_and_does_not_depend_on_the_checkout() -> None:
    version = config_version(DOCUMENT)

    assert re.fullmatch(r"[0-9a-f]{64}", version)
    assert config_version({**DOCUMENT, "directory": "/somewhere/else"}) == version
    assert config_version({key: value for key, value in DOCUMENT.items() if key != "directory"}) == version
    assert config_version(dict(reversed(DOCUMENT.items()))) == version


@pytest.mark.rules("A71", "A72")
@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"source": {**DOCUMENT["source"], "settings": {**DOCUMENT["source"]["settings"], "token": "hunter3"}}},
        {"source": {**DOCUMENT["source"], "settings": {**DOCUMENT["source"]["settings"], "directory": "day1"}}},
        {"source": {**DOCUMENT["source"], "settings": {**DOCUMENT["source"]["settings"], "url": "http://other"}}},
        {"schema_mapping": [{"name": "BuiltinTag", "fields": [{"name": "name", "static": 0}]}]},
        {"overrides": {"directory": "day1"}},
    ],
)
def test_every_setting_is_inside(change: dict[str, Any]) -> None:
    assert config_version({**DOCUMENT, **change}) != config_version(DOCUMENT)


@pytest.mark.rules("A73", "G12")
@pytest.mark.parametrize("bad", [float("nan"), {1: "hunter2"}, {"x": b"hunter2"}, "hunter2\x00"])
def test_g12_a_value_that_cannot_be_digested_is_named_and_not_shown(bad: Any) -> None:
    with pytest.raises(UnserializablePayloadValueError, match=r"configuration\.source") as caught:
        config_version({**DOCUMENT, "source": bad})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UnserializablePayloadValueError):
        config_version({True: "a key that YAML reads as a boolean"})  # type: ignore[dict-item]  # what YAML can give


@pytest.mark.rules("A60")
def test_a_supplied_version_is_taken_as_it_is_or_refused() -> None:
    for version in ("1", "v 1.0", "~"):
        assert require_config_version(version) == version
    for version in ("", "é", "a\n", "\t"):
        with pytest.raises(ConfigurationError):
            require_config_version(version)
