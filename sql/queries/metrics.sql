-- name: binding_states
-- What metrics say of each binding, in one look. Of the log at most one event is read for a binding, and orders that
-- were carried out are not looked at: the cost grows with the bindings and with what waits, not with the log.
select b.url, b.branch, b.head_position, o.orders, o.oldest,
       coalesce(c.position, 0) as checkpoint_position, c.age as checkpoint_age
from ledger.binding b
cross join lateral (
    select count(*) as orders,
           greatest(coalesce(extract(epoch from clock_timestamp() - min(i.received_at)), 0), 0)::float8 as oldest
    from ledger.inbox i where i.binding_id = b.id and i.state = 'open'
) o
left join lateral (
    select e.position, greatest(extract(epoch from clock_timestamp() - e.recorded_at), 0)::float8 as age
    from ledger.event e
    where e.binding_id = b.id and e.kind in ('plan.sealed', 'checkpoint.published') and e.kind = 'checkpoint.published'
    order by e.binding_id desc, e.position desc limit 1
) c on true
order by b.id;

-- name: projection_lags
-- How many events of each log each of these projections ($1, $2) has not taken.
select b.url, b.branch, n.projection, greatest(b.head_position - coalesce(c.position, 0), 0) as lag
from ledger.binding b
cross join unnest($1::text[], $2::integer[]) as n (projection, version)
left join ledger.projection_cursor c
    on c.projection = n.projection and c.version = n.version and c.slot = 'live' and c.binding_id = b.id
order by b.id, n.projection;
