"""The schema of the branch, how each kind of a configuration converges (P43), and what the account may do with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from consumers.infrahub.doctor.account import AccountChecks
from consumers.infrahub.doctor.server import ServerChecks
from consumers.infrahub.exchange import FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.schema import fetch_schema
from ledger.checkup import Said, failure, good, skipped, warning
from ledger.plan.keying import candidate_keys, cannot_be_supplied
from ledger.plan.unfit_names import why_never_taken
from ledger.schema import DestinationSchema, KeyPath, Kind

Identities = Callable[[DestinationSchema], Mapping[str, Sequence[str]]]
"""The kinds that a configuration writes, each with the fields that identify its objects, for a schema."""

Convergence = Literal["human-friendly id", "constraint", "nothing"]

_KEYLESS = "it has neither a human-friendly id nor a uniqueness constraint: every create would be one more object"
_GIVE_KEY = "name these fields among the identifiers of its entry, or declare a key in the schema"
_RENAME = "change that name in the schema, or leave the kind out of the configuration"
_NEEDED = ("view", "create", "update")
_MAX_NAMED = 10
_NO_CONFIGURATION = "no configuration was named: --config-file or --name looks at the kinds that it writes"


@dataclass(frozen=True, slots=True)
class KindKey:
    """How the objects of one kind are told apart at the destination, and whether a plan can name them so.

    Attributes:
        kind: its name.
        converges_on: what makes a repeated create the same object.
        key: the schema's paths of that.
        identity: the fields by which the configuration identifies objects.
        problem: why a create would be refused; empty where none would.
    """

    kind: str
    converges_on: Convergence
    key: tuple[str, ...]
    identity: tuple[str, ...]
    problem: str = ""

    def record(self) -> dict[str, Any]:
        """As it stands in a document."""
        return {
            "kind": self.kind,
            "converges_on": self.converges_on,
            "key": list(self.key),
            "identity": list(self.identity),
            "problem": self.problem,
        }


class KindChecks:
    """Asks over the gateway of a run."""

    def __init__(
        self, gateway: InfrahubGateway, server: ServerChecks, account: AccountChecks, identities: Identities | None
    ) -> None:
        self._gateway = gateway
        self._server = server
        self._account = account
        self._identities = identities
        self._schema: DestinationSchema | None = None
        self._kinds: tuple[str, ...] = ()

    async def readable(self) -> Said:
        """The schema of the branch can be read."""
        self._schema = await fetch_schema(self._gateway)
        nodes = sum(kind.is_node for kind in self._schema.kinds.values())
        return good(f"{nodes:,} kinds, hash {self._schema.hash}", kinds=nodes, hash=self._schema.hash)

    async def keyed(self) -> Said | Sequence[Said]:
        """Every kind of the configuration is there and has a key that the configuration's identity covers."""
        if self._identities is None or self._schema is None:
            return skipped(_NO_CONFIGURATION)
        identities = self._identities(self._schema)
        self._kinds = tuple(kind for kind in sorted(identities) if self._schema.node(kind) is not None)
        keys = [key_of(self._schema.kinds[kind], tuple(identities[kind])) for kind in self._kinds]
        table = [key.record() for key in keys]
        problems = [failure(f"{key.kind}: {key.problem}", _GIVE_KEY) for key in keys if key.problem]
        problems += [
            failure(words, _RENAME) for kind in self._kinds for words in _unfit_names(self._schema.kinds[kind])
        ]
        by_constraint = [key.kind for key in keys if key.converges_on == "constraint"]
        counted = f"{len(keys):,} kinds, {len(keys) - len(by_constraint):,} converge on their human-friendly id"
        if by_constraint:
            counted += f", {len(by_constraint):,} on a constraint alone"
        if problems:
            return [warning(counted, "see the failures below", table=table), *problems]
        return good(counted, table=table)

    async def permitted(self) -> Said | Sequence[Said]:
        """The account may read, make and change objects of every kind of the configuration, on this branch."""
        if not self._kinds:
            return skipped(_NO_CONFIGURATION if self._identities is None else "no kind to ask about")
        if not self._account.tells:
            return skipped("this server does not tell rights")
        try:
            data = await self._gateway.read(_permissions_text(self._kinds), {})
        except FailedExchange as failed:
            raise self._gateway.not_read(
                failed.exchange, checked="the account's rights on the kinds", expected="a decision for each"
            ) from None  # foreign text is not masked
        allowed = {"ALLOW", "ALLOW_DEFAULT" if self._server.is_default_branch else "ALLOW_OTHER"}
        denied: dict[str, list[str]] = {}
        unknown: list[str] = []
        for number, kind in enumerate(self._kinds):
            rights = _rights(data, f"k{number}", kind)
            if rights is None:
                unknown.append(kind)
            elif missing := [action for action in _NEEDED if rights.get(action) not in allowed]:
                denied[kind] = missing
        return _permitted_said(self._kinds, denied, unknown)


def _unfit_names(kind: Kind) -> list[str]:
    """Names that keep the server from taking writes of the kind, and from which."""
    refused: dict[str, list[str]] = {}
    for action in ("create", "update"):
        for why in why_never_taken(kind, action):
            refused.setdefault(why, []).append(f"{action}s")
    return [f"{kind.kind}: {why}; the server takes no {' and no '.join(of)} of it" for why, of in refused.items()]


def key_of(kind: Kind, identity: tuple[str, ...]) -> KindKey:
    """What a create of that kind converges on, where its objects are identified by these fields (P43 to P45)."""
    keys = candidate_keys(kind)
    by: Convergence = "human-friendly id" if kind.human_friendly_id else "constraint" if keys else "nothing"
    if not keys:
        return KindKey(kind.kind, by, (), identity, _KEYLESS)
    lacking = [[f"{path.raw} {why}" for path in key if (why := _uncovered(kind, path, identity))] for key in keys]
    covered = next((key for key, lacks in zip(keys, lacking, strict=True) if not lacks), keys[0])
    problem = "" if not all(lacking) else "; or ".join(", ".join(lacks) for lacks in lacking)
    return KindKey(kind.kind, by, tuple(path.raw for path in covered), identity, problem)


def _uncovered(kind: Kind, path: KeyPath, identity: tuple[str, ...]) -> str | None:
    return cannot_be_supplied(kind, path) or (None if path.field in identity else "is not in the identity")


def _permissions_text(kinds: Sequence[str]) -> str:
    shown = "permissions { edges { node { kind view create update } } }"
    return f"query Rights {{ {' '.join(f'k{number}: {kind} {{ {shown} }}' for number, kind in enumerate(kinds))} }}"


def _rights(data: Mapping[str, Any], key: str, kind: str) -> Mapping[str, Any] | None:
    try:
        nodes = [edge["node"] for edge in data[key]["permissions"]["edges"]]
    except (KeyError, TypeError):
        return None
    return next((node for node in nodes if isinstance(node, dict) and node.get("kind") == kind), None)


def _permitted_said(kinds: Sequence[str], denied: Mapping[str, list[str]], unknown: Sequence[str]) -> Sequence[Said]:
    said = [
        failure(
            f"{_named(names, len(kinds))}: the account may not {' or '.join(actions)}{_meaning(actions)}",
            "give its role these permissions on these kinds and this branch",
            kinds=names,
            actions=list(actions),
        )
        for actions, names in _grouped(denied).items()
    ]
    if unknown:
        said.append(
            warning(
                f"{', '.join(unknown)}: not told",
                "look at the roles of the account at the destination",
                kinds=list(unknown),
            )
        )
    fine = len(kinds) - len(denied) - len(unknown)
    return said or [good(f"the account may {', '.join(_NEEDED)} all {fine:,} kinds", kinds=fine)]


def _meaning(actions: Sequence[str]) -> str:
    """Without the right to view, a server counts objects truly and refuses to show them: nothing is read as absent."""
    return "; nothing of these can be planned, because the server refuses to show them" if "view" in actions else ""


def _named(names: Sequence[str], total: int) -> str:
    if len(names) == total > 1:
        return f"all {total:,} kinds"
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def _grouped(denied: Mapping[str, list[str]]) -> dict[tuple[str, ...], list[str]]:
    """The kinds by what they lack, so that a role without any right is one line and not forty."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for kind, actions in denied.items():
        groups.setdefault(tuple(actions), []).append(kind)
    return groups
