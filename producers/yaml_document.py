"""Reads a YAML file as one mapping, strictly: a key that is written twice is refused, not silently overwritten."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from ledger.errors import ConfigurationError


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses duplicate keys; anchors, merge keys and folded scalars work as usual."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            # ``<<`` merges other mappings in and may be repeated
            if name in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {name!r} is written twice", key.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


def read_yaml_document(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        ConfigurationError: the file is not there, cannot be read, is no YAML, or is not a mapping with text keys.
    """
    try:
        text = path.read_text(encoding="utf-8")
        # a subclass of SafeLoader: it builds plain values only
        document = yaml.load(text, Loader=_StrictLoader)  # noqa: S506
    except OSError as exc:
        raise _unreadable(path, "a readable file", exc.strerror or type(exc).__name__) from exc
    except UnicodeDecodeError as exc:
        raise _unreadable(path, "UTF-8 text", str(exc)) from exc
    except yaml.MarkedYAMLError as exc:
        # the mark holds a piece of the file, which may be a credential: say the place and the problem only
        where = f" in line {exc.problem_mark.line + 1}" if exc.problem_mark is not None else ""
        raise _unreadable(path, "YAML", f"{exc.problem}{where}") from None
    except (yaml.YAMLError, RecursionError) as exc:
        raise _unreadable(path, "YAML", type(exc).__name__) from None
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise _unreadable(path, "a mapping with text keys", type(document).__name__)
    return document


def _unreadable(path: Path, expected: str, found: str) -> ConfigurationError:
    return ConfigurationError(
        checked=f"the configuration file {path}",
        expected=expected,
        found=found,
        next_action="check the path and the file",
    )
