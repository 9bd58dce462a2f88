"""Secrets by the name of their field, for a review that has no schema to ask: plans made by hand are shown as well."""

from __future__ import annotations

import pytest

from ledger.plan.describe import SENSITIVE, SecretFields, identity_text
from ledger.plan.review_changes import masked
from tests.support.lab_schema import lab_schema

HIDDEN = [
    "password",
    "admin_password",
    "adminPassword",
    "passwd",
    "enablepassword",
    "password2",
    "user_pwd",
    "login-pass",
    "passphrase",
    "bios_passcode",
    "shared_secret",
    "clientSecret",
    "secret",
    "credentials",
    "snmp_community",
    "token",
    "api_tokens",
    "apiToken",
    "bearer",
    "session_cookie",
    "sim_pin",
    "otp",
    "psk",
    "wifi_psk",
    "wpa_key",
    "api_key",
    "apikey",
    "private_key",
    "pre_shared_key",
    "preshared_key",
    "bgp_md5_key",
    "ospf_auth_key",
    "sharedKey",
    "radius_key",
    "tacacs_keys",
    "encryption_key",
    "snmp_privacy_key",
    "license_key",
]

SHOWN = [
    "name",
    "description",
    "key",
    "keyboard",
    "primary_key_label",
    "pinned",
    "spin",
    "passive",
    "bypass_mode",
    "compass",
    "tokenizer",
    "serial",
    "vlan_id",
    "communication",
    "ssh_public_key",
    "asset_tag",
    "spinning",
]


@pytest.mark.rules("G12")
@pytest.mark.parametrize("name", HIDDEN)
def test_g12_a_name_that_speaks_of_a_secret_hides_its_value(name: str) -> None:
    assert masked("AnyKind", name, "hunter2", SecretFields()) == SENSITIVE
    assert "hunter2" not in identity_text("AnyKind", {name: "hunter2"})


@pytest.mark.parametrize("name", SHOWN)
def test_an_ordinary_name_is_shown(name: str) -> None:
    assert masked("AnyKind", name, "value", SecretFields()) == "value"


@pytest.mark.rules("G12")
def test_g12_where_a_schema_is_known_its_kinds_decide_and_not_the_name() -> None:
    secrets = SecretFields(lab_schema())
    assert masked("LabDevice", "secret", "hunter2", secrets) == SENSITIVE
    assert masked("LabDevice", "name", "password", secrets) == "password"
