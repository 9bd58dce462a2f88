"""Files that hold one secret each."""

from __future__ import annotations

from pathlib import Path

from ledger.errors import ConfigurationError


def secret_file(name: str, path: Path) -> str:
    """What a file holds, without blanks around it.

    Args:
        name: of the setting or variable that names it.
        path: of the file.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(
            checked=f"the file that {name} names",
            expected="a readable text file",
            found=f"{path}: {type(exc).__name__}",
            next_action="make the file readable for this user, or correct the variable",
        ) from exc
