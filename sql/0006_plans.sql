-- migrate:up
--
-- Plans by what they contain. A plan is stored once for each checksum, line by line with the exact bytes, so that years
-- later an auditor needs nothing but this database: sha256(body || lines) is the checksum again, and sealing a plan
-- computes it, so nothing else can stand under that name. The artifact is what one run had: two runs may share a plan
-- and differ in their manifests.
--
-- A plan is stored in one transaction: open_plan_v1, add_plan_lines_v1 and add_plan_coverage_v1 as often as needed,
-- seal_plan_v1. Between them nobody else sees it; a plan is there whole or not at all. A plan that was never sealed
-- cannot stay: at the commit the deferred key of plan_seal refuses.
--
-- object_key is sha256 over the canonical bytes of kind and identity. With it "who else wrote these objects" is a
-- matter of look-ups: key -> lines of plans -> runs with that plan -> their event of that operation.

set local role ledger_owner;

create table ledger.plan (
    checksum bytea primary key check (pg_catalog.length(checksum) = 32),
    body text collate "C" not null check (pg_catalog.jsonb_typeof(body::jsonb) = 'object'),
    operations_count bigint not null check (operations_count >= 0),
    coverage_count bigint check (coverage_count >= 0),
    coverage_digest bytea check (pg_catalog.length(coverage_digest) = 32),
    stored_at timestamptz not null default pg_catalog.clock_timestamp(),
    constraint plan_coverage_is_whole check (pg_catalog.num_nulls(coverage_count, coverage_digest) in (0, 2))
);
comment on table ledger.plan is 'The checksummed body of a manifest: without run_id, created_at, plan_checksum.';
comment on column ledger.plan.coverage_count is 'NULL: this plan recorded no coverage.';

create table ledger.plan_seal (
    checksum bytea primary key references ledger.plan (checksum)
);
alter table ledger.plan add constraint plan_is_sealed
    foreign key (checksum) references ledger.plan_seal (checksum) deferrable initially deferred;

create table ledger.plan_operation (
    plan_checksum bytea not null,
    ordinal bigint not null check (ordinal >= 0),
    operation_id text collate "C" not null,
    object_key bytea not null check (pg_catalog.length(object_key) = 32),
    line text collate "C" not null check (pg_catalog.right(line, 1) = E'\n'),
    primary key (plan_checksum, ordinal)
);
create index plan_operation_of_object on ledger.plan_operation (object_key, plan_checksum);

create table ledger.plan_coverage (
    plan_checksum bytea not null,
    ordinal bigint not null check (ordinal >= 0),
    line text collate "C" not null check (pg_catalog.right(line, 1) = E'\n'),
    primary key (plan_checksum, ordinal)
);

create table ledger.artifact (
    binding_id bigint not null references ledger.binding (id),
    run_id text collate "C" not null,
    plan_checksum bytea not null references ledger.plan (checksum),
    source text collate "C" not null,
    manifest bytea not null,
    artifact_digest bytea not null check (pg_catalog.length(artifact_digest) = 32),
    stored_at timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (binding_id, run_id)
);

create table ledger.detail (
    sha256 bytea primary key check (sha256 = pg_catalog.sha256(data)),
    data bytea not null check (pg_catalog.length(data) <= 67108864),
    stored_at timestamptz not null default pg_catalog.clock_timestamp()
);
comment on table ledger.detail is 'Lists that did not fit an event body, whole; the event names the sha256.';

select ledger.make_append_only(t)
from unnest(array['ledger.plan', 'ledger.plan_seal', 'ledger.plan_operation', 'ledger.plan_coverage',
                  'ledger.artifact', 'ledger.detail']::regclass[]) t;

-- True: store it now. False: it is there, with the same content.
create function ledger.open_plan_v1(p_checksum bytea, p_body text, p_operations_count bigint, p_coverage_count bigint,
                                    p_coverage_digest bytea) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan ledger.plan;
begin
    perform ledger.require_durable_commit();
    perform pg_advisory_xact_lock(hashtextextended('ledger.plan:' || encode(p_checksum, 'hex'), 0));
    select p.* into v_plan from ledger.plan p where p.checksum = p_checksum;
    if not found then
        insert into ledger.plan (checksum, body, operations_count, coverage_count, coverage_digest)
        values (p_checksum, p_body, p_operations_count, p_coverage_count, p_coverage_digest);
        return true;
    end if;
    if (v_plan.body, v_plan.operations_count, v_plan.coverage_count, v_plan.coverage_digest)
       is distinct from (p_body, p_operations_count, p_coverage_count, p_coverage_digest) then
        raise exception using errcode = 'LG019', message = 'another plan is stored under this checksum',
            detail = json_build_object('checksum', encode(p_checksum, 'hex'))::text;
    end if;
    return false;
end
$$;

create function ledger.require_open_plan(p_checksum bytea) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from ledger.plan p where p.checksum = p_checksum)
       or exists (select from ledger.plan_seal s where s.checksum = p_checksum) then
        raise exception using errcode = 'LG021', message = 'lines are added between open_plan_v1 and seal_plan_v1 only',
            detail = json_build_object('checksum', encode(p_checksum, 'hex'))::text;
    end if;
end
$$;

create function ledger.add_plan_lines_v1(p_checksum bytea, p_first_ordinal bigint, p_lines text[],
                                         p_object_keys bytea[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform ledger.require_open_plan(p_checksum);
    insert into ledger.plan_operation (plan_checksum, ordinal, operation_id, object_key, line)
    select p_checksum, p_first_ordinal + n.place - 1, n.line::json ->> 'operation_id', n.object_key, n.line
    from unnest(p_lines, p_object_keys) with ordinality as n (line, object_key, place);
end
$$;

create function ledger.add_plan_coverage_v1(p_checksum bytea, p_first_ordinal bigint, p_lines text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform ledger.require_open_plan(p_checksum);
    insert into ledger.plan_coverage (plan_checksum, ordinal, line)
    select p_checksum, p_first_ordinal + n.place - 1, n.line
    from unnest(p_lines) with ordinality as n (line, place);
end
$$;

-- The last step: what was added is counted and hashed, and must be what the checksum says.
create function ledger.seal_plan_v1(p_checksum bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan ledger.plan;
    v_lines bytea;
    v_coverage bytea;
    v_count bigint;
    v_coverage_count bigint;
begin
    perform ledger.require_open_plan(p_checksum);
    select p.* into strict v_plan from ledger.plan p where p.checksum = p_checksum;
    select count(*), string_agg(convert_to(o.line, 'UTF8'), '' order by o.ordinal) into v_count, v_lines
    from ledger.plan_operation o where o.plan_checksum = p_checksum;
    select count(*), string_agg(convert_to(c.line, 'UTF8'), '' order by c.ordinal) into v_coverage_count, v_coverage
    from ledger.plan_coverage c where c.plan_checksum = p_checksum;
    if v_count <> v_plan.operations_count or v_coverage_count <> coalesce(v_plan.coverage_count, 0)
       or sha256(convert_to(v_plan.body, 'UTF8') || coalesce(v_lines, '')) <> p_checksum
       or sha256(coalesce(v_coverage, '')) <> v_plan.coverage_digest then
        raise exception using errcode = 'LG019', message = 'the lines are not the plan that the checksum names',
            detail = json_build_object('checksum', encode(p_checksum, 'hex'), 'lines', v_count,
                                       'expected_lines', v_plan.operations_count, 'coverage', v_coverage_count,
                                       'expected_coverage', v_plan.coverage_count)::text;
    end if;
    insert into ledger.plan_seal (checksum) values (p_checksum);
end
$$;

create function ledger.store_artifact_v1(p_binding_id bigint, p_run_id text, p_plan_checksum bytea, p_source text,
                                         p_manifest bytea, p_artifact_digest bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_known ledger.artifact;
begin
    perform ledger.lock_binding(p_binding_id);
    select a.* into v_known from ledger.artifact a where a.binding_id = p_binding_id and a.run_id = p_run_id;
    if not found then
        insert into ledger.artifact (binding_id, run_id, plan_checksum, source, manifest, artifact_digest)
        values (p_binding_id, p_run_id, p_plan_checksum, p_source, p_manifest, p_artifact_digest);
    elsif (v_known.plan_checksum, v_known.source, v_known.manifest, v_known.artifact_digest)
          is distinct from (p_plan_checksum, p_source, p_manifest, p_artifact_digest) then
        raise exception using errcode = 'LG020', message = 'another artifact is stored for this run',
            detail = json_build_object('run_id', p_run_id,
                                       'digest', encode(v_known.artifact_digest, 'hex'))::text;
    end if;
end
$$;

create function ledger.store_detail_v1(p_data bytea) returns bytea
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_sha256 bytea := sha256(p_data);
begin
    perform ledger.require_durable_commit();
    perform pg_advisory_xact_lock(hashtextextended('ledger.detail:' || encode(v_sha256, 'hex'), 0));
    if not exists (select from ledger.detail d where d.sha256 = v_sha256) then
        insert into ledger.detail (sha256, data) values (v_sha256, p_data);
    end if;
    return v_sha256;
end
$$;

grant execute on function ledger.open_plan_v1, ledger.add_plan_lines_v1, ledger.add_plan_coverage_v1,
    ledger.seal_plan_v1, ledger.store_artifact_v1, ledger.store_detail_v1 to ledger_writer;
