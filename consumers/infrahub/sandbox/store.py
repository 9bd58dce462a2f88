"""The whole store of a sandbox: its branches, its ids, its clock."""

from __future__ import annotations

import hashlib
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from consumers.infrahub.sandbox.branch import BranchInfo, BranchStore
from consumers.infrahub.sandbox.branch_changes import carry_changes
from consumers.infrahub.sandbox.content import branch_content
from consumers.infrahub.sandbox.errors import MutationRefusedError, unprocessable
from consumers.infrahub.sandbox.merge_checks import conflicts_to_resolve, in_conflict, touched_fields, violations
from consumers.infrahub.sandbox.model import SchemaModel, read_model
from consumers.infrahub.sandbox.overlap import Glimpse
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.writes import BranchWriter

DEFAULT_BRANCH = "main"
MERGED = "MERGED"
"""The status of a branch that takes no writes any more."""
DEFAULT_NAMESPACE_KIND = "IpamNamespace"
_MIN_BRANCH_NAME = 3
_FIRST_ID = 0x18000000
"""Where ids begin; of a server they begin with the time."""
GLOBAL_BRANCH = "-global-"
"""What all branches share; nobody may write to it or read from it."""
_ODD_IN_NAMES = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{")
"""What a name of Git's may not hold; the server names its branches likewise."""


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class SandboxStore:
    """Branches of objects in memory.

    ``seed`` makes every id of a run the same as in the last one with that seed and those writes; without it ids are
    random. ``lock`` is held by the server for each request, and has to be held by anyone who looks in from a test.
    """

    def __init__(
        self,
        schema_document: Mapping[str, Any],
        *,
        seed: str | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.model: SchemaModel = read_model(schema_document)
        self.lock = threading.RLock()
        self.used_ids: set[str] = set()
        self.sequence = 0
        self._seed = seed if seed is not None else uuid.uuid4().hex
        self._counter = 0
        self._clock = clock
        self.deployment_id = self.new_id()
        main = BranchInfo(self.new_id(), DEFAULT_BRANCH, "Default Branch", True, self.now(), True, 0)
        self.branches: dict[str, BranchStore] = {DEFAULT_BRANCH: BranchStore(main, self.model)}
        if DEFAULT_NAMESPACE_KIND in self.model.kinds:
            namespace = self.create(DEFAULT_NAMESPACE_KIND, {"name": "default"})
            self.branches[DEFAULT_BRANCH].set_values(self.branches[DEFAULT_BRANCH].nodes[namespace], {"default": True})

    def now(self) -> str:
        """The time of a write as the server writes it."""
        return self._clock().astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def new_id(self) -> str:
        """An id that this store has not used yet. Ids grow, as those of a server: what is new is on the last page."""
        while True:
            self._counter += 1
            digest = hashlib.sha256(f"{self._seed}:{self._counter}".encode()).digest()
            grown = (_FIRST_ID + self._counter).to_bytes(4, "big")
            node_id = str(uuid.UUID(bytes=grown + digest[4:16], version=4))
            if node_id not in self.used_ids:
                return node_id

    def next_sequence(self) -> int:
        """The place of a new object in the order of all creates."""
        self.sequence += 1
        return self.sequence

    @property
    def default_branch(self) -> BranchStore:
        """The branch that cannot be deleted."""
        return self.branches[DEFAULT_BRANCH]

    def create_branch(self, name: str, *, description: str = "", sync_with_git: bool = False) -> BranchStore:
        """Fork the default branch.

        Raises:
            MutationRefusedError: the name is too short or taken.
        """
        if len(name) < _MIN_BRANCH_NAME:
            raise unprocessable("invalid field name: String should have at least 3 characters")
        if _ODD_IN_NAMES.search(name):
            reason = "disallowed ASCII characters/patterns"
            raise unprocessable(f"Branch name contains invalid patterns or characters: {reason}")
        with self.lock:
            if name in self.branches or name == GLOBAL_BRANCH:
                raise MutationRefusedError(f"The branch {name} already exists", http_status=422)
            info = BranchInfo(self.new_id(), name, description, False, self.now(), sync_with_git, self.sequence)
            self.branches[name] = self.default_branch.fork(info)
            return self.branches[name]

    def delete_branch(self, name: str) -> None:
        """Throw a branch away with all that was written to it.

        Raises:
            MutationRefusedError: there is none of that name, or it is the default branch.
        """
        with self.lock:
            if name == DEFAULT_BRANCH:
                raise unprocessable(f"Unable to delete {name} it is the default branch.")
            if name not in self.branches:
                raise MutationRefusedError(f"Branch: {name} not found.", "BRANCH_NOT_FOUND", 400, {"branch_name": name})
            del self.branches[name]

    def merge_branch(self, name: str) -> None:
        """Bring what was written to a branch to the default branch, and close it for writes.

        Raises:
            MutationRefusedError: there is no such branch, or it was merged, or what both sides changed does not go
                together, or what would come of it is not allowed.
        """
        with self.lock:
            branch = self._open_branch(name, f"Branch '{name}' has already been merged")
            if in_conflict(branch, self.default_branch):
                raise unprocessable(
                    f"Branch {name} contains conflicts with the default branch. Please create a Proposed Change to"
                    " resolve the conflicts or manually update them before merging."
                )
            trial = self.default_branch.fork(self.default_branch.info)
            carry_changes(branch, trial, self.now())
            if found := list(violations(branch, trial, touched_fields(branch, self.default_branch))):
                raise unprocessable(",\n".join(found))
            carry_changes(branch, self.default_branch, self.now())
            branch.info = replace(branch.info, status=MERGED)

    def rebase_branch(self, name: str) -> None:
        """Fork a branch anew, and bring what was written to it over.

        Raises:
            MutationRefusedError: there is no such branch, or it was merged, or both sides changed one value.
        """
        with self.lock:
            refusal = f"Branch '{name}' has been merged and is read-only. Rebase is not allowed."
            branch = self._open_branch(name, refusal)
            if named := conflicts_to_resolve(branch, self.default_branch):
                raise unprocessable(
                    f"Branch {name} contains conflicts with the default branch that must be addressed before rebasing."
                    " Resolve these conflicts in favor of the branch, in a proposed change or with the"
                    " ResolveDiffConflict mutation, or update the data so that both branches agree:"
                    f" {', '.join(named)}."
                )
            info = replace(branch.info, branched_from=self.now(), fork_sequence=self.sequence)
            self.branches[name] = self.default_branch.fork(info)
            carry_changes(branch, self.branches[name], info.branched_from)

    def _open_branch(self, name: str, refusal: str) -> BranchStore:
        if name not in self.branches:
            raise MutationRefusedError(f"Branch: {name} not found.", "BRANCH_NOT_FOUND", 400, {"branch_name": name})
        if self.branches[name].info.status == MERGED:
            raise unprocessable(refusal)
        return self.branches[name]

    def writer(self, branch: str = DEFAULT_BRANCH, glimpse: Glimpse | None = None) -> BranchWriter:
        """The writes of one branch, with all the server's checks; ``glimpse`` is what one of them read before."""
        return BranchWriter(self, self.branches[branch], glimpse)

    def create(self, kind: str, fields: Mapping[str, Any], *, branch: str = DEFAULT_BRANCH) -> str:
        """Put an object in from a test or demo: plain attribute values, ids for peers. Returns its id."""
        with self.lock:
            return self.writer(branch).create(kind, self._payload(kind, fields)).id

    def update(self, node_id: str, fields: Mapping[str, Any], *, branch: str = DEFAULT_BRANCH) -> None:
        """Change an object as another client would."""
        with self.lock:
            node = self.branches[branch].nodes[node_id]
            self.writer(branch).update(node, self._payload(node.kind.name, fields))

    def delete(self, node_id: str, *, branch: str = DEFAULT_BRANCH) -> None:
        """Delete an object as another client would, with the server's checks and cascades."""
        with self.lock:
            node = self.branches[branch].nodes[node_id]
            self.writer(branch).delete(node.kind.name, {"id": node_id})

    def get(self, node_id: str, *, branch: str = DEFAULT_BRANCH) -> Node | None:
        """A copy of an object, None where it is not on the branch."""
        with self.lock:
            node = self.branches[branch].nodes.get(node_id)
            return node.copy() if node is not None else None

    def count(self, kind: str, *, branch: str = DEFAULT_BRANCH) -> int:
        """How many objects of a kind or generic there are."""
        with self.lock:
            return self.branches[branch].count(kind)

    def content(self, *, branch: str = DEFAULT_BRANCH) -> list[dict[str, Any]]:
        """All objects without ids and times, in a canonical order: equal for two stores that hold the same."""
        with self.lock:
            return branch_content(self.branches[branch])

    def _payload(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        model = self.model.kinds[kind]
        return {name: _wrapped(model.ends.get(name), value) for name, value in fields.items()}


def _wrapped(end: Any, value: Any) -> Any:
    if end is None:
        return {"value": value}
    if isinstance(value, str):
        return {"id": value}
    return value if value is None else [{"id": item} for item in value]
