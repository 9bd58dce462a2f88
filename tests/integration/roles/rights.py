"""The rights of the roles, as the catalogue has them and as docs/roles.md tells them."""

from __future__ import annotations

from typing import Any

EXPECTED: dict[str, str] = {
    **dict.fromkeys(
        (
            "api_token",
            "artifact",
            "binding",
            "detail",
            "event",
            "event_kind",
            "inbox",
            "intake_refusal",
            "plan",
            "plan_coverage",
            "plan_operation",
            "plan_seal",
            "relay",
            "schema_migration",
            "worker",
        ),
        "ledger_projector: SELECT; ledger_reader: SELECT; ledger_writer: SELECT",
    ),
    **dict.fromkeys(
        ("projection_cursor", "projection_document"),
        "ledger_projector: DELETE, INSERT, SELECT, UPDATE; ledger_reader: SELECT; ledger_writer: SELECT",
    ),
    **dict.fromkeys(
        (
            "add_plan_coverage_v1",
            "add_plan_lines_v1",
            "advance_relay_v1",
            "append_control_v1",
            "append_v1",
            "applied_and_next_v1",
            "claim_relay_v1",
            "claim_v1",
            "close_order_v1",
            "create_api_token_v1",
            "open_plan_v1",
            "refuse_message_v1",
            "register_binding_v1",
            "release_relay_v1",
            "release_v1",
            "renew_v1",
            "revoke_api_token_v1",
            "seal_plan_v1",
            "store_artifact_v1",
            "store_detail_v1",
            "submit_commit_v1",
            "submit_order_v1",
            "use_api_token_v1",
            "worker_beat_v1",
            "worker_gone_v1",
        ),
        "ledger_writer: EXECUTE",
    ),
    "schema ledger": "ledger_projector: USAGE; ledger_reader: USAGE; ledger_writer: USAGE",
}
"""Everything that anybody but the owner may do in the schema. What is not here may be done by nobody."""

_GRANTS = """
select name, string_agg(role || ': ' || rights, '; ' order by role collate "C") as rights
from (
    select o.name, coalesce(r.rolname::text, 'PUBLIC') as role,
           string_agg(distinct a.privilege_type || case when a.is_grantable then ' +' else '' end, ', ') as rights
    from (
        select c.relname::text as name, coalesce(c.relacl, acldefault(
            case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)) as acl, c.relowner as owner
        from pg_class c where c.relnamespace = 'ledger'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
        union all
        select p.proname::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner
        from pg_proc p where p.pronamespace = 'ledger'::regnamespace
        union all
        select t.typname::text || ' (type)', t.typacl, t.typowner
        from pg_type t where t.typnamespace = 'ledger'::regnamespace and t.typacl is not null
        union all
        select c.relname || '.' || a.attname, a.attacl, c.relowner
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace = 'ledger'::regnamespace and a.attacl is not null
        union all
        select 'schema ' || n.nspname, n.nspacl, n.nspowner from pg_namespace n where n.nspname = 'ledger'
    ) o
    cross join lateral aclexplode(o.acl) a
    left join pg_roles r on r.oid = a.grantee
    where a.grantee <> o.owner
    group by o.name, role
) g
group by name
"""


async def granted(admin: Any) -> dict[str, str]:
    """What the catalogue says, in the form of :data:`EXPECTED`."""
    return dict(await admin.fetch(_GRANTS))


def table() -> str:
    """The rights as a Markdown table, one line for each thing."""
    lines = [f"| `{name}` | {EXPECTED[name].replace('; ', '<br>')} |" for name in sorted(EXPECTED)]
    return "\n".join(["| what | who may do what with it |", "| --- | --- |", *lines])
