"""What no case asks both servers, with the reason; what is known of it, and what stands in for the comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotCompared:
    """One behaviour of a server. ``instead`` says what the sandbox does, and which test looks at it, if any."""

    what: str
    why: str
    instead: str


NOT_COMPARED: tuple[NotCompared, ...] = (
    NotCompared(
        "[haz] Two writes of one object's peers at the same moment: edges are doubled, a single peer becomes two, and"
        " then no read of that object succeeds any more.",
        "A matter of milliseconds: a real server does it in some of the attempts, so no answer can be recorded.",
        "A request that is held `amid-write` writes what it worked out before the other one was through, and doubles"
        " edges just so (`tests/contract/sandbox/test_overlaps.py`). On a real server `make live` shows the damage"
        " (`tests/live/test_two_writers.py`).",
    ),
    NotCompared(
        "[haz] Two creates under one id at the same moment, of a kind without anything unique: two objects of one id.",
        "The same.",
        "Likewise, by `amid-write`. Kinds with a key are compared (`race/same-own-id-with-a-key`).",
    ),
    NotCompared(
        "[haz] Answers of a server whose database goes away or whose process dies: HTTP 200 with an error and a path,"
        " HTTP 503, HTTP 500 in text, no answer; written or not.",
        "The server has to be killed for it.",
        "Faults of the sandbox, each with and without the write (`tests/contract/write_surface/test_faults.py`)."
        " `make live-crash` kills a real server.",
    ),
    NotCompared(
        "Load shedding (HTTP 429), and writes that meet a merge (HTTP 200, status 423).",
        "Neither can be brought about reliably.",
        "Faults of the sandbox.",
    ),
    NotCompared(
        "Expiry of a session: TOKEN_EXPIRED.",
        "Only sessions that a login opens expire so. The client never logs in, it sends the token of an account; one"
        " that has expired is answered like a wrong one, which is compared (`access/expired-token`).",
        "The sandbox knows no sessions: any `Authorization` is wrong there.",
    ),
    NotCompared(
        "What an account may do (`permissions`, `AccountProfile`, `InfrahubPermissions`), which `doctor` asks.",
        "The sandbox has no accounts, but one token for all and one for what an account without a role may.",
        "`doctor` says of the sandbox that it does not tell rights; before a real server it is tested by `make live`.",
    ),
    NotCompared(
        "Values of a moment in the past (`?at=`).",
        "The sandbox keeps no history, and nothing here asks for any.",
        "It refuses a moment that is none, or before the beginning, as the server does, and answers any other as now.",
    ),
    NotCompared(
        "Profiles, groups, resource pools, templates, artifacts, diffs and proposed changes.",
        "No plan writes them.",
        "The sandbox has the relationships to them, always empty.",
    ),
    NotCompared(
        "Values that a worker works out later: computed attributes and human-friendly ids of other objects.",
        "The server of the tests runs without a worker.",
        "The sandbox works human-friendly ids out anew at each read.",
    ),
    NotCompared(
        "Time: how long anything takes, and what is given up when.",
        "It is another one on each machine.",
        "Delays are faults of the sandbox.",
    ),
    NotCompared(
        "What `tests/contract/sandbox` and `tests/contract/write_surface` look at.",
        "They hold the sandbox's own store, journal and faults in their hands.",
        "Their answers are those of the cases. The write surface and the reader are tried on both servers by the same"
        " tests in `tests/contract/cases`, and on the real one in `tests/live`.",
    ),
)
