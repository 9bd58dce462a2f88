-- migrate:up
--
-- The relay: how far the events of a binding have been put onto a topic, and who does so now.
--
-- A cursor names the last event that the topic is known to hold. It is moved after the brokers have acknowledged, so an
-- event is on the topic at least once, and what a process that died had sent and not noted comes again. It moves forward
-- only, and only onto an event that is there under the hash that is named: neither a relay that was frozen and wakes up
-- nor one with another log in front of it can pass over anything.
--
-- claim_relay_v1    takes a relay that is free or whose time has run out, and raises its epoch
-- advance_relay_v1  moves the cursor and prolongs the claim, under owner and epoch
-- release_relay_v1  gives it back at once
--
-- A relay never locks the row of its binding: appends do not wait for it.

set local role ledger_owner;

create table ledger.relay (
    binding_id bigint not null references ledger.binding (id),
    topic text collate "C" not null check (pg_catalog.octet_length(topic) between 1 and 249),
    position bigint not null default 0 check (position >= 0),
    hash bytea not null default pg_catalog.decode(pg_catalog.repeat('00', 32), 'hex')
        check (pg_catalog.length(hash) = 32),
    epoch bigint not null default 0 check (epoch >= 0),
    owner text collate "C" check (pg_catalog.octet_length(owner) between 1 and 128),
    expires_at timestamptz,
    primary key (binding_id, topic),
    constraint relay_claim_is_whole check (pg_catalog.num_nulls(owner, expires_at) in (0, 2))
) with (fillfactor = 10);
comment on table ledger.relay is 'How far the events of a binding are on a topic, and which relay sees to it now.';

create function ledger.refuse_relay_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' and new.binding_id = old.binding_id and new.topic = old.topic
       and new.position >= old.position and new.epoch >= old.epoch then
        return new;
    end if;
    raise exception using errcode = 'LG011', message = 'a relay is never removed, and neither cursor nor epoch goes back',
        detail = json_build_object('table', 'ledger.relay', 'command', tg_op)::text;
end
$$;
create trigger refuse_row_change before update or delete on ledger.relay
    for each row execute function ledger.refuse_relay_change();
create trigger refuse_truncate before truncate on ledger.relay
    for each statement execute function ledger.refuse_change();
alter table ledger.relay enable always trigger refuse_row_change;
alter table ledger.relay enable always trigger refuse_truncate;

create function ledger.check_relay_call(p_owner text, p_ttl double precision) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if (p_owner <> '' and p_ttl > 0 and p_ttl <= 86400) is not true then
        raise exception using errcode = 'LG021', message = 'a relay needs an owner and a time of up to a day',
            detail = json_build_object('ttl', p_ttl)::text;
    end if;
end
$$;

-- The relay's row, locked; it begins in front of the first event.
create function ledger.lock_relay(p_binding_id bigint, p_topic text) returns ledger.relay
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_relay ledger.relay;
begin
    perform ledger.require_durable_commit();
    select r.* into v_relay from ledger.relay r where r.binding_id = p_binding_id and r.topic = p_topic for update;
    if found then
        return v_relay;
    end if;
    if not exists (select from ledger.binding b where b.id = p_binding_id) then
        raise exception using errcode = 'LG010', message = 'this binding is not registered',
            detail = json_build_object('binding_id', p_binding_id)::text;
    end if;
    perform pg_advisory_xact_lock(hashtextextended(format('ledger.relay %s/%s', p_binding_id, p_topic), 0));
    if not exists (select from ledger.relay r where r.binding_id = p_binding_id and r.topic = p_topic) then
        insert into ledger.relay (binding_id, topic) values (p_binding_id, p_topic);
    end if;
    select r.* into strict v_relay from ledger.relay r
    where r.binding_id = p_binding_id and r.topic = p_topic for update;
    return v_relay;
end
$$;

-- Asked again by the same owner it answers as the first time: an owner is the name of one claim.
create function ledger.claim_relay_v1(
    p_binding_id bigint, p_topic text, p_owner text, p_ttl double precision,
    out epoch bigint, out "position" bigint, out hash bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_relay ledger.relay;
begin
    perform ledger.check_relay_call(p_owner, p_ttl);
    v_relay := ledger.lock_relay(p_binding_id, p_topic);
    if v_relay.owner <> p_owner and v_relay.expires_at > clock_timestamp() then
        raise exception using errcode = 'LG025', message = 'another process relays this binding',
            detail = json_build_object('owner', v_relay.owner, 'epoch', v_relay.epoch, 'seconds',
                                       extract(epoch from v_relay.expires_at - clock_timestamp()))::text;
    end if;
    update ledger.relay r
    set epoch = case when v_relay.owner = p_owner then r.epoch else r.epoch + 1 end, owner = p_owner,
        expires_at = clock_timestamp() + make_interval(secs => p_ttl)
    where r.binding_id = p_binding_id and r.topic = p_topic
    returning r.epoch, r.position, r.hash into epoch, "position", hash;
end
$$;

create function ledger.advance_relay_v1(
    p_binding_id bigint, p_topic text, p_owner text, p_epoch bigint, p_position bigint, p_hash bytea,
    p_ttl double precision) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_relay ledger.relay;
    v_hash bytea;
begin
    perform ledger.check_relay_call(p_owner, p_ttl);
    v_relay := ledger.lock_relay(p_binding_id, p_topic);
    if (v_relay.owner = p_owner and v_relay.epoch = p_epoch) is not true then
        raise exception using errcode = 'LG026', message = 'this relay no longer holds the binding',
            detail = json_build_object('own_epoch', p_epoch, 'epoch', v_relay.epoch, 'owner', v_relay.owner)::text;
    end if;
    select e.hash into v_hash from ledger.event e where e.binding_id = p_binding_id and e.position = p_position;
    if not found and p_position = 0 then
        v_hash := decode(repeat('00', 32), 'hex');
    end if;
    if (p_position >= v_relay.position and v_hash = p_hash) is not true then
        raise exception using errcode = 'LG027', message = 'a relay moves forward, onto an event of this log',
            detail = json_build_object('cursor', v_relay.position, 'asked', p_position,
                                       'hash', encode(v_hash, 'hex'), 'asked_hash', encode(p_hash, 'hex'))::text;
    end if;
    update ledger.relay r
    set position = p_position, hash = p_hash, expires_at = clock_timestamp() + make_interval(secs => p_ttl)
    where r.binding_id = p_binding_id and r.topic = p_topic;
end
$$;

-- Giving back what is not one's own any more is harmless: the answer to the first time may have been lost.
create function ledger.release_relay_v1(p_binding_id bigint, p_topic text, p_owner text, p_epoch bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform ledger.check_relay_call(p_owner, 1);
    perform ledger.require_durable_commit();
    update ledger.relay r set owner = null, expires_at = null
    where r.binding_id = p_binding_id and r.topic = p_topic and r.owner = p_owner and r.epoch = p_epoch;
end
$$;

grant execute on function ledger.claim_relay_v1, ledger.advance_relay_v1, ledger.release_relay_v1 to ledger_writer;
