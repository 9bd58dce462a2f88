-- name: database_clock
-- The clock that decides about leases and stamps events.
select clock_timestamp();

-- name: login_rights
-- What the login of the service is: members of the ledger's roles, and what it should better not be.
select session_user::text as login,
       pg_has_role(session_user, 'ledger_writer', 'usage') as writer,
       pg_has_role(session_user, 'ledger_projector', 'usage') as projector,
       pg_has_role(session_user, 'ledger_reader', 'usage') as reader,
       pg_has_role(session_user, 'ledger_owner', 'member') as owner,
       (select rolsuper from pg_roles where rolname = session_user) as superuser;
