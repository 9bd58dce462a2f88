-- migrate:up
--
-- Projections: states computed from events alone, thrown away and rebuilt at will (G9). Nothing here is a fact, so
-- nothing here is append-only, and the role that writes here cannot reach an event.
--
-- A document is the canonical text of one state; its place is the projection with its version, the binding, a subject
-- (a run) and an item of it (an operation). A cursor says up to which event its documents have come. Both move in one
-- transaction, and a cursor moves only from where the mover believed it to be: of two projectors one collides and
-- starts again, neither counts an event twice.
--
-- slot is 'live', or 'rebuild' while a second set is computed beside it and compared at the same position.

set local role ledger_owner;

create table ledger.projection_cursor (
    projection text collate "C" not null,
    version integer not null check (version > 0),
    slot text collate "C" not null check (slot in ('live', 'rebuild')),
    binding_id bigint not null references ledger.binding (id),
    position bigint not null check (position >= 0),
    hash bytea not null check (pg_catalog.length(hash) = 32),
    primary key (projection, version, slot, binding_id)
);
comment on table ledger.projection_cursor is 'How far a projection has come: the last event taken, and its hash.';

create table ledger.projection_document (
    projection text collate "C" not null,
    version integer not null check (version > 0),
    slot text collate "C" not null check (slot in ('live', 'rebuild')),
    binding_id bigint not null,
    subject text collate "C" not null,
    item text collate "C" not null,
    document text collate "C" not null,
    primary key (projection, version, slot, binding_id, subject, item)
) with (fillfactor = 80);
comment on table ledger.projection_document is 'Computed from events; may be deleted and computed again.';

grant insert, update, delete on ledger.projection_cursor, ledger.projection_document to ledger_projector;
