-- name: open_plan
-- Begin to store a plan; false where it is stored already.
select ledger.open_plan_v1($1, $2, $3, $4, $5);

-- name: add_plan_lines
-- Some lines of the plan that is being stored.
select ledger.add_plan_lines_v1($1, $2, $3, $4);

-- name: add_plan_coverage
-- Some lines of its coverage.
select ledger.add_plan_coverage_v1($1, $2, $3);

-- name: seal_plan
-- Count and hash what was added.
select ledger.seal_plan_v1($1);

-- name: plan
-- The head of a stored plan, and how many rows say that it is whole.
select checksum, body, operations_count, coverage_count, coverage_digest,
       (select count(*) from ledger.plan_seal s where s.checksum = $1) as seals
from ledger.plan where checksum = $1;

-- name: plan_lines
-- One page of a plan's lines from ordinal $2 on.
select line from ledger.plan_operation where plan_checksum = $1 and ordinal >= $2 order by ordinal limit $3;

-- name: plan_operations
-- The same with what stands beside each line to be looked up by.
select line, operation_id, object_key
from ledger.plan_operation where plan_checksum = $1 and ordinal >= $2 order by ordinal limit $3;

-- name: planned_page
-- The same as bytes.
select textsend(line), textsend(operation_id), object_key
from ledger.plan_operation where plan_checksum = $1 and ordinal >= $2 order by ordinal limit $3;

-- name: coverage_lines
-- One page of its coverage from ordinal $2 on.
select line from ledger.plan_coverage where plan_checksum = $1 and ordinal >= $2 order by ordinal limit $3;

-- name: store_artifact
-- The manifest that one run had.
select ledger.store_artifact_v1($1, $2, $3, $4, $5, $6);

-- name: artifact
-- The manifest of a run, as it was verified.
select run_id, plan_checksum, source, manifest, artifact_digest, stored_at
from ledger.artifact where binding_id = $1 and run_id = $2;

-- name: store_detail
-- A list that is too long for an event body.
select ledger.store_detail_v1($1);

-- name: detail
-- Such a list by its sha256.
select data from ledger.detail where sha256 = $1;

-- name: coverage_line
-- The line of a plan's coverage at ordinal $2.
select line from ledger.plan_coverage where plan_checksum = $1 and ordinal = $2;

-- name: plan_lines_between
-- The lines of a plan from ordinal $2 to $3, with their objects.
select ordinal, object_key, line from ledger.plan_operation
where plan_checksum = $1 and ordinal between $2 and $3 order by ordinal;

-- name: planned_between
-- The same as bytes.
select ordinal, object_key, textsend(line) from ledger.plan_operation
where plan_checksum = $1 and ordinal between $2 and $3 order by ordinal;
