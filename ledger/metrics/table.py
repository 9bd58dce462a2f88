"""Every metric of the product. ``docs/metrics.md`` is generated from this table."""

from __future__ import annotations

from ledger.metrics.declaring import Kind, Label, Metric, Process

WORK, SERVE = (Process.WORK,), (Process.SERVE,)
BOTH = (Process.WORK, Process.SERVE)

URL = Label("url", "the addresses of the destinations that the ledger knows")
BRANCH = Label("branch", "the branches of those destinations")
PART = Label(
    "part", "the parts of the service", ("writers", "sharing", "checkpoints", "intake", "relay", "database", "status")
)
MESSAGE_OUTCOME = Label("outcome", "what became of a message", ("taken", "repeated", "refused"))
OPERATION_OUTCOME = Label("outcome", "what became of an operation", ("applied", "skipped", "failed", "unknown"))
ENDING = Label("ending", "how a run ended", ("applied", "failed", "interrupted", "stopped", "refused"))
WHICH = Label("which", "which operations are counted", ("done", "total"))
PROJECTION = Label("projection", "the projections of this program")
VERSION = Label("version", "the version of the program that runs")
METHOD = Label("method", "the HTTP methods of the API, and `other`")
ADDRESS = Label("address", "the routes of the API, with placeholders instead of values, and `none`")
STATUS = Label("status", "HTTP status codes")
HOW = Label("how", "`done`, or the class of the error that ended the audit")

BINDING = (URL, BRANCH)

BUILD_INFO = Metric(
    "apply_ledger_build_info", Kind.GAUGE, "Always 1; the label is the version of the program.", BOTH, (VERSION,)
)

# The state of the ledger, read from the database
DATABASE_UP = Metric(
    "apply_ledger_database_up",
    Kind.GAUGE,
    "1 if the ledger's database answered the last look at its state; without an answer the state has no series.",
    BOTH,
)
HEAD_POSITION = Metric(
    "apply_ledger_head_position", Kind.GAUGE, "Position of the last event of a destination's log.", BOTH, BINDING
)
OPEN_ORDERS = Metric(
    "apply_ledger_open_orders",
    Kind.GAUGE,
    "Orders (commits, resumptions, stops) that are recorded and not carried out yet.",
    BOTH,
    BINDING,
)
OLDEST_OPEN_ORDER = Metric(
    "apply_ledger_oldest_open_order_age_seconds",
    Kind.GAUGE,
    "Seconds since the oldest open order was recorded; 0 if none is open.",
    BOTH,
    BINDING,
)
CHECKPOINT_POSITION = Metric(
    "apply_ledger_checkpoint_position",
    Kind.GAUGE,
    "Position of the event that records the newest checkpoint; 0 if there is none.",
    BOTH,
    BINDING,
)
CHECKPOINT_AGE = Metric(
    "apply_ledger_checkpoint_age_seconds",
    Kind.GAUGE,
    "Seconds since the newest checkpoint was recorded; no series if there is none.",
    BOTH,
    BINDING,
)
PROJECTION_LAG = Metric(
    "apply_ledger_projection_lag_events",
    Kind.GAUGE,
    "Events of a log that a projection has not taken yet.",
    SERVE,
    (*BINDING, PROJECTION),
)

# Writers
LEASE_HELD = Metric(
    "apply_ledger_lease_held", Kind.GAUGE, "1 while this process is the writer of a destination.", WORK, BINDING
)
RUN_OPERATIONS = Metric(
    "apply_ledger_run_operations",
    Kind.GAUGE,
    "Operations of the current or last run of this process: those with a success, and all of the plan.",
    WORK,
    (*BINDING, WHICH),
)
SETTLING = Metric(
    "apply_ledger_settling_seconds",
    Kind.GAUGE,
    "Length of the wait after a lost answer, as it began; 0 outside such a wait.",
    WORK,
    BINDING,
)
OPERATIONS = Metric(
    "apply_ledger_operations",
    Kind.COUNTER,
    "Outcomes of operations that this process recorded in the ledger.",
    WORK,
    (*BINDING, OPERATION_OUTCOME),
)
RUNS = Metric(
    "apply_ledger_runs",
    Kind.COUNTER,
    "Endings of runs that this process recorded in the ledger.",
    WORK,
    (*BINDING, ENDING),
)

# Kafka
INTAKE_MESSAGES = Metric(
    "apply_ledger_intake_messages",
    Kind.COUNTER,
    "Messages of the topic of commits that were handled.",
    WORK,
    (MESSAGE_OUTCOME,),
)
RELAY_EVENTS = Metric("apply_ledger_relay_events", Kind.COUNTER, "Events that the brokers acknowledged.", WORK, BINDING)
RELAY_POSITION = Metric(
    "apply_ledger_relay_position",
    Kind.GAUGE,
    "Position up to which the topic of events holds the log, as this process relayed it.",
    WORK,
    BINDING,
)

# The process
PART_UP = Metric("apply_ledger_part_up", Kind.GAUGE, "1 while a part of the service runs.", WORK, (PART,))
PART_RESTARTS = Metric(
    "apply_ledger_part_restarts",
    Kind.COUNTER,
    "Restarts of a part of the service after the database or the brokers were unreachable.",
    WORK,
    (PART,),
)

# The HTTP API
HTTP_REQUESTS = Metric(
    "apply_ledger_http_requests",
    Kind.COUNTER,
    "Requests that were answered, by address and status.",
    SERVE,
    (METHOD, ADDRESS, STATUS),
)
HTTP_SECONDS = Metric(
    "apply_ledger_http_request_seconds",
    Kind.HISTOGRAM,
    "Seconds until a request was answered; streams are left out.",
    SERVE,
    (METHOD, ADDRESS),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0),
)
AUTHENTICATION_FAILURES = Metric(
    "apply_ledger_authentication_failures",
    Kind.COUNTER,
    "Requests with a token that is unknown, expired or revoked.",
    SERVE,
)
RATE_LIMITED = Metric(
    "apply_ledger_rate_limited_requests", Kind.COUNTER, "Requests that were refused by the rate limit.", SERVE
)
EVENT_STREAMS = Metric("apply_ledger_event_streams", Kind.GAUGE, "Event streams that are open.", SERVE)
STREAMED_EVENTS = Metric("apply_ledger_streamed_events", Kind.COUNTER, "Events that were sent to event streams.", SERVE)
SLOW_READERS = Metric(
    "apply_ledger_slow_stream_readers",
    Kind.COUNTER,
    "Answers that were ended because their reader did not take them in time.",
    SERVE,
)
AUDITS = Metric("apply_ledger_audits", Kind.GAUGE, "Audits that run.", SERVE)
ENDED_AUDITS = Metric("apply_ledger_ended_audits", Kind.COUNTER, "Audits that ended, by how they ended.", SERVE, (HOW,))

METRICS: tuple[Metric, ...] = (
    BUILD_INFO,
    DATABASE_UP,
    HEAD_POSITION,
    OPEN_ORDERS,
    OLDEST_OPEN_ORDER,
    CHECKPOINT_POSITION,
    CHECKPOINT_AGE,
    PROJECTION_LAG,
    LEASE_HELD,
    RUN_OPERATIONS,
    SETTLING,
    OPERATIONS,
    RUNS,
    INTAKE_MESSAGES,
    RELAY_EVENTS,
    RELAY_POSITION,
    PART_UP,
    PART_RESTARTS,
    HTTP_REQUESTS,
    HTTP_SECONDS,
    AUTHENTICATION_FAILURES,
    RATE_LIMITED,
    EVENT_STREAMS,
    STREAMED_EVENTS,
    SLOW_READERS,
    AUDITS,
    ENDED_AUDITS,
)


def metrics_of(process: Process) -> tuple[Metric, ...]:
    """What a command shows."""
    return tuple(metric for metric in METRICS if process in metric.shown_by)
