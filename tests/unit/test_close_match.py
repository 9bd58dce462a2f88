"""What a mistyped name may have been meant for."""

from __future__ import annotations

import pytest

from ledger.close_match import with_close_match

SETTINGS = ("directory", "url", "verify_ssl")
KINDS = ("DcimDevice", "DcimDeviceType", "IpamPrefix")


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("directroy", SETTINGS, "directroy (did you mean directory?)"),
        ("dir", SETTINGS, "dir (did you mean directory?)"),
        ("ssl", SETTINGS, "ssl (did you mean verify_ssl?)"),
        ("di", SETTINGS, "di"),
        ("path", SETTINGS, "path"),
        ("DcimDevices", KINDS, "DcimDevices (did you mean DcimDevice?)"),
        ("prefix", KINDS, "prefix (did you mean IpamPrefix?)"),
        ("Dcim", KINDS, "Dcim"),
        ("x" * 5_000, KINDS, "x" * 5_000),
    ],
)
def test_one_name_that_is_close_or_of_which_it_is_a_part_is_told(name: str, known: tuple[str, ...], told: str) -> None:
    assert with_close_match(name, known) == told
