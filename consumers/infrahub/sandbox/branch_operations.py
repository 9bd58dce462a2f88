"""Branches as GraphQL sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from consumers.infrahub.sandbox.branch import BranchInfo
from consumers.infrahub.sandbox.selection import SelectedField, Selector
from consumers.infrahub.sandbox.store import DEFAULT_BRANCH, SandboxStore

PayloadGetter = Callable[[SelectedField, Selector], Any]


def answer_branches(
    store: SandboxStore, item: SelectedField, arguments: Mapping[str, Any], selector: Selector
) -> list[dict[str, Any]]:
    """The ``Branch`` query: all branches, or those of a name or of ids."""
    wanted = [
        branch.info
        for branch in store.branches.values()
        if arguments.get("name") in (None, branch.info.name)
        and (arguments.get("ids") is None or branch.info.id in arguments["ids"])
    ]
    return [_branch(info, item, selector) for info in wanted]


def run_branch_mutation(store: SandboxStore, name: str, data: Mapping[str, Any]) -> PayloadGetter:
    """A mutation of branches; done at once, so that waiting for completion changes nothing.

    Raises:
        MutationRefusedError: nothing was done.
    """
    info: BranchInfo | None = None
    if name == "BranchCreate":
        description, sync = data.get("description") or "", bool(data.get("sync_with_git"))
        info = store.create_branch(data["name"], description=description, sync_with_git=sync).info
    else:
        run = {
            "BranchDelete": store.delete_branch,
            "BranchMerge": store.merge_branch,
            "BranchRebase": store.rebase_branch,
        }[name]
        run(data.get("name") or "")

    def payload(item: SelectedField, selector: Selector) -> Any:
        if item.name == "ok":
            return True
        return _branch(info, item, selector) if item.name == "object" and info is not None else None

    return payload


def _branch(info: BranchInfo, item: SelectedField, selector: Selector) -> dict[str, Any]:
    facts = {
        "id": info.id,
        "name": info.name,
        "description": info.description,
        "origin_branch": DEFAULT_BRANCH,
        "branched_from": info.branched_from,
        "created_at": info.branched_from,
        "status": info.status,
        "is_default": info.is_default,
        "sync_with_git": info.sync_with_git,
        "has_schema_changes": False,
        "graph_version": 1,
        "__typename": "Branch",
    }
    return {below.key: facts[below.name] for below in selector.fields(item.below, frozenset())}
