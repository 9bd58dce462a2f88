"""A small Infrahub: HTTP and GraphQL over objects in memory, for demo, rehearsal and tests.

It is generated from a schema document (what ``GET /api/schema`` serves) and answers as Infrahub 1.11 does, in the same
words and codes where they matter to a client that has to know whether something was written.

What is simulated
    ``/api/schema``, ``/api/config``, ``/api/info``; per kind the mutations Create, Update, Upsert and Delete; list
    queries for kinds and generics with ``ids``, ``hfid``, filters on attributes and across one relationship, offset,
    limit, order and count; branches (``BranchCreate``, ``BranchDelete``, ``BranchMerge``, ``BranchRebase``,
    ``Branch``), conflicts and violations that a merge is refused for; one token for all, one of an account without a
    role, anonymous reads. The order in which an upsert looks for its object, mandatory fields, value checks and normal
    forms, null and default, uniqueness also across a generic and against the default branch, replace-sets, both sides
    of a relationship, mandatory peers and cascades on a delete, RelationshipAdd and RelationshipRemove, several errors
    at once, ``updated_at`` that moves with a real change only; namespaces of prefixes and addresses, and the tree that
    these form. Writes are serial, except one that a fault holds ``amid-write``: it overlaps with those that come
    meanwhile, and corrupts what a server would let it.

What is not
    Diff; ``at`` (a moment is checked and answered as now); accounts and roles; resource pools; profiles, groups and the
    other ``Core`` kinds that a document names but does not describe; computed and read-only attributes but those of
    prefixes (they stay null); ordering that a request asks for; events, webhooks, tasks; schema loading. Everything is
    forgotten when the process ends, unless the store is kept in a file (:mod:`.store_file`).

Faults can be switched on for chosen requests (:class:`SandboxFaults`), and every mutation that arrived is in a
:class:`Journal`; over HTTP both are below ``/sandbox``.
"""

from __future__ import annotations

from consumers.infrahub.sandbox.app import Sandbox, create_app
from consumers.infrahub.sandbox.faults import ActiveFault, FaultAnswer, FaultRule, SandboxFaults
from consumers.infrahub.sandbox.journal import Journal, JournalEntry
from consumers.infrahub.sandbox.server import RunningSandbox, SandboxStartError, serve
from consumers.infrahub.sandbox.store import SandboxStore

__all__ = [
    "ActiveFault",
    "FaultAnswer",
    "FaultRule",
    "Journal",
    "JournalEntry",
    "RunningSandbox",
    "Sandbox",
    "SandboxFaults",
    "SandboxStartError",
    "SandboxStore",
    "create_app",
    "serve",
]
