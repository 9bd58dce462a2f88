"""Ways to spoil an artifact, each a small function of an artifact and a source of chance.

Files are spoiled as bytes, as lines, or as trees of JSON; then the attacker repairs what gives him away: identifiers
and order, coverage, counts and checksum. ``chance`` is ``random.Random`` in a campaign and Hypothesis's in a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from tests.hostile.artifact_files import (
    Artifact,
    encode,
    records_of,
)
from tests.hostile.artifact_judge import CANARY
from tests.hostile.artifact_repairs import REPAIRS
from tests.hostile.artifact_values import NAMES, TEXTS, TOKENS, any_value

FileName = Literal["manifest", "operations", "coverage"]
MAX_SIZE = 200_000
"""Bytes of one file of a small case; larger ones are the corpus's business."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to spoil an artifact, by name."""

    name: str
    spoil: Callable[[Artifact, Random], Artifact]


def spoiled(start: Artifact, chance: Random) -> tuple[Artifact, str]:
    """One hostile artifact and how it was made: one to three mutations, then a repair by the attacker, or none."""
    artifact = start
    made_by = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        mutation = chance.choice(MUTATIONS)
        artifact = mutation.spoil(artifact, chance)
        made_by.append(mutation.name)
    repair = chance.choice(REPAIRS)
    made_by.append(repair.__name__)
    return repair(artifact, chance), "+".join(made_by)


# --- bytes --------------------------------------------------------------------------------------------------------


def _file(chance: Random) -> FileName:
    names: tuple[FileName, ...] = ("operations", "operations", "operations", "manifest", "manifest", "coverage")
    return chance.choice(names)


def _on_bytes(change: Callable[[bytes, Random], bytes]) -> Callable[[Artifact, Random], Artifact]:
    def spoil(artifact: Artifact, chance: Random) -> Artifact:
        name = _file(chance)
        data: bytes | None = getattr(artifact, name)
        return artifact if data is None else _with(artifact, name, change(data, chance)[:MAX_SIZE])

    return spoil


def _with(artifact: Artifact, name: FileName, data: bytes | None) -> Artifact:
    match name:
        case "manifest":
            return replace(artifact, manifest=data)
        case "operations":
            return replace(artifact, operations=data)
        case "coverage":
            return replace(artifact, coverage=data)


def _flip_bit(data: bytes, chance: Random) -> bytes:
    if not data:
        return b"\x00"
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _insert_token(data: bytes, chance: Random) -> bytes:
    at = chance.choice((0, len(data), chance.randrange(len(data) + 1)))
    return data[:at] + chance.choice(TOKENS) + data[at:]


def _replace_range(data: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    stop = min(len(data), start + chance.choice((1, 2, 8, 64)))
    return data[:start] + chance.choice((b"", *TOKENS)) + data[stop:]


def _repeat_range(data: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    part = data[start : start + chance.choice((1, 4, 40, 400))]
    return data[:start] + part * chance.choice((2, 3, 20)) + data[start:]


def _cut(data: bytes, chance: Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _reencode(data: bytes, chance: Random) -> bytes:
    text = data.decode("utf-8", "replace")
    encoding = chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp1252", "utf-7"))
    return text.encode(encoding, "replace")


def _line_ends(data: bytes, chance: Random) -> bytes:
    return data.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b" \n", b"\xe2\x80\xa8", b"\x0b\n", b"")))


def _absent(artifact: Artifact, chance: Random) -> Artifact:
    return _with(artifact, _file(chance), chance.choice((None, b"", b"\n", b"null", b"{}", b"[]", b"\x00" * 100)))


def _swapped_files(artifact: Artifact, chance: Random) -> Artifact:
    if chance.random() < 0.5:
        return replace(artifact, manifest=artifact.operations, operations=artifact.manifest)
    return replace(artifact, operations=artifact.coverage, coverage=artifact.operations)


# --- lines --------------------------------------------------------------------------------------------------------


def _on_lines(change: Callable[[list[bytes], Random], list[bytes]]) -> Callable[[Artifact, Random], Artifact]:
    def spoil(artifact: Artifact, chance: Random) -> Artifact:
        name: FileName = chance.choice(("operations", "operations", "coverage"))
        data: bytes | None = getattr(artifact, name)
        if not data:
            return artifact
        lines = data.split(b"\n")[:-1] or [data]
        return _with(artifact, name, b"".join(line + b"\n" for line in change(lines, chance))[:MAX_SIZE])

    return spoil


def _drop_line(lines: list[bytes], chance: Random) -> list[bytes]:
    at = chance.randrange(len(lines))
    return lines[:at] + lines[at + 1 :]


def _double_line(lines: list[bytes], chance: Random) -> list[bytes]:
    at, to = chance.randrange(len(lines)), chance.randrange(len(lines) + 1)
    return [*lines[:to], lines[at], *lines[to:]]


def _shuffle(lines: list[bytes], chance: Random) -> list[bytes]:
    return chance.sample(lines, len(lines))


def _many_lines(lines: list[bytes], chance: Random) -> list[bytes]:
    return lines + [chance.choice((b"", b"{}", b"[]", b"0", b" ", lines[0]))] * chance.choice((1, 3, 200))


def _respell(lines: list[bytes], chance: Random) -> list[bytes]:
    """One line with another spelling of the same value."""
    at = chance.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return lines
    spellings: tuple[Callable[[], str], ...] = (
        lambda: json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")),
        lambda: json.dumps(value, sort_keys=True, ensure_ascii=False),
        lambda: json.dumps(value, sort_keys=False, ensure_ascii=False, separators=(",", ":")) + " ",
        lambda: (
            json.dumps(dict(reversed(list(value.items()))), ensure_ascii=False, separators=(",", ":"))
            if isinstance(value, dict)
            else " 1"
        ),
        lambda: json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).replace(
            '"tier":', '"tier":0e'
        ),
        lambda: json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).replace("/", "\\/"),
    )
    lines[at] = chance.choice(spellings)().encode("utf-8", "surrogatepass")
    return lines


def _double_key(lines: list[bytes], chance: Random) -> list[bytes]:
    """One key of one object a second time, at whatever depth it stands."""
    at = chance.randrange(len(lines))
    places = [index for index, byte in enumerate(lines[at]) if byte == ord("{")]
    if places:
        place = chance.choice(places) + 1
        key = chance.choice(NAMES)
        lines[at] = lines[at][:place] + encode(key) + b":" + encode(any_value(chance, 1)) + b"," + lines[at][place:]
    return lines


# --- trees --------------------------------------------------------------------------------------------------------


def _on_tree(change: Callable[[Any, Random], None]) -> Callable[[Artifact, Random], Artifact]:
    """A change of the decoded manifest, or of one decoded record; it is written canonically again."""

    def spoil(artifact: Artifact, chance: Random) -> Artifact:
        name = _file(chance)
        data: bytes | None = getattr(artifact, name)
        if name == "manifest":
            document = artifact.document
            change(document, chance)
            return replace(artifact, manifest=_spell(document, chance))
        records = records_of(data)
        if not records:
            return artifact
        at = chance.randrange(len(records))
        holder = [records[at]]
        change(holder[0] if isinstance(holder[0], dict | list) else holder, chance)
        lines = [_spell(record, chance) if index == at else encode(record) for index, record in enumerate(records)]
        return _with(artifact, name, b"".join(line + b"\n" for line in lines)[:MAX_SIZE])

    return spoil


def _spell(value: Any, chance: Random) -> bytes:
    """Canonical bytes, with placeholders for what JSON cannot say replaced by the bare token."""
    if chance.random() < 0.1:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()  # escapes instead of raw surrogates
    data = encode(value)
    for token in (b"NaN", b"-Infinity", b"1e400", b"9" * 5000, b"1E2", b"[" * 100_000):
        data = data.replace(b'"@' + token[:20] + b'@"', token)
    return data


def _containers(value: Any) -> list[Any]:
    found = [value] if isinstance(value, dict | list) else []
    for item in found:
        found += [
            inner for inner in (item.values() if isinstance(item, dict) else item) if isinstance(inner, dict | list)
        ]
    return found


def _set_value(tree: Any, chance: Random) -> None:
    place = chance.choice(_containers(tree) or [[0]])
    if isinstance(place, dict) and place:
        place[chance.choice(sorted(place))] = any_value(chance)
    elif isinstance(place, list) and place:
        place[chance.randrange(len(place))] = any_value(chance)


def _add_key(tree: Any, chance: Random) -> None:
    place = chance.choice(_containers(tree) or [[0]])
    if isinstance(place, dict):
        place[chance.choice((*NAMES, *TEXTS))] = any_value(chance)
    else:
        place.append(any_value(chance))


def _drop_key(tree: Any, chance: Random) -> None:
    place = chance.choice(_containers(tree) or [[0]])
    if isinstance(place, dict) and place:
        del place[chance.choice(sorted(place))]
    elif isinstance(place, list) and place:
        del place[chance.randrange(len(place))]


def _rename_key(tree: Any, chance: Random) -> None:
    place = chance.choice(_containers(tree) or [[0]])
    if isinstance(place, dict) and place:
        place[chance.choice((*NAMES, *TEXTS))] = place.pop(chance.choice(sorted(place)))


def _swap_values(tree: Any, chance: Random) -> None:
    one, other = (chance.choice(_containers(tree) or [[0]]) for _ in range(2))
    if isinstance(one, dict) and isinstance(other, dict) and one and other:
        here, there = chance.choice(sorted(one)), chance.choice(sorted(other))
        one[here], other[there] = json.loads(json.dumps(other[there])), json.loads(json.dumps(one[here]))


def _plant_secret(tree: Any, chance: Random) -> None:
    """A secret where one can stand: a password attribute, the address, a key of the binding, a key of the manifest."""
    if not isinstance(tree, dict):
        return
    if "payload" in tree or "kind" in tree:
        tree["kind"] = "LabDevice"
        tree.setdefault("payload", {})
        if isinstance(tree["payload"], dict):
            tree["payload"]["secret"] = CANARY
    elif "run_id" in tree:
        binding = tree.get("destination_binding")
        if isinstance(binding, dict):
            place = chance.randrange(3)
            if place == 0:
                binding["url"] = f"http://ada:{CANARY}@infrahub.example:8000"
            elif place == 1:
                binding["token"] = CANARY
            else:
                binding["url"] = f"http://infrahub.example:8000/?token={CANARY}"


MUTATIONS = (
    Mutation("flip", _on_bytes(_flip_bit)),
    Mutation("insert", _on_bytes(_insert_token)),
    Mutation("replace", _on_bytes(_replace_range)),
    Mutation("repeat", _on_bytes(_repeat_range)),
    Mutation("cut", _on_bytes(_cut)),
    Mutation("reencode", _on_bytes(_reencode)),
    Mutation("line-ends", _on_bytes(_line_ends)),
    Mutation("absent", _absent),
    Mutation("swapped", _swapped_files),
    Mutation("drop-line", _on_lines(_drop_line)),
    Mutation("double-line", _on_lines(_double_line)),
    Mutation("shuffle", _on_lines(_shuffle)),
    Mutation("many-lines", _on_lines(_many_lines)),
    Mutation("respell", _on_lines(_respell)),
    Mutation("double-key", _on_lines(_double_key)),
    *(Mutation("set", _on_tree(_set_value)) for _ in range(4)),
    *(Mutation("add", _on_tree(_add_key)) for _ in range(2)),
    Mutation("drop-key", _on_tree(_drop_key)),
    Mutation("rename", _on_tree(_rename_key)),
    Mutation("swap", _on_tree(_swap_values)),
    Mutation("secret", _on_tree(_plant_secret)),
)
