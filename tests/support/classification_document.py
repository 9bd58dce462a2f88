"""Makes ``docs/classification.md``: the table of answers as the program has it, line by line.

``python -m tests.support.classification_document`` writes the page; a test fails while the page is stale.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from consumers.infrahub.answers import MAX_NESTING, read_answer
from consumers.infrahub.bodies import MAX_BYTES, MAX_ITEMS
from consumers.infrahub.classification import TABLE, Row, Verdict, classify
from consumers.infrahub.errors import StaleDestinationIdError
from consumers.infrahub.exchange import NEVER_SENT, Event
from consumers.infrahub.observation import observe
from tests.support.answer_cells import cells

PAGE = Path(__file__).resolve().parents[2] / "docs" / "classification.md"

_HEAD = f"""# What an answer of the destination proves

Made by `make rules` from the table in the program; do not edit.

One request is sent for an operation, and what comes back is looked up here. The first line that matches decides.
Every other part of an answer, whatever it says of itself, changes nothing.

* **applied**: the operation is recorded as applied. It takes a whole answer with status 200 that is nothing but
  `ok: true` and a node id; on an update, or a create under an id of ours, it is the id that was sent (G6).
* **proven unwritten**: recorded as failed, nothing was written. It takes the destination's own word, as its only error,
  that it does not know the id that the update is keyed by, and no result beside it (P133, G5).
* **may have written; our own id decides**: the id that we chose for a create is in use. It is read back on that branch:
  if there is exactly one such object, an earlier attempt made it, and the operation is applied. If there is none, it is
  unknown with the refusal of that line; if there are two (attempts overlapped), or the server does not tell, with
  `OwnIdDoubledError` or `OwnIdUnreadError`.
* **may have written**: recorded as unknown; the run stops, or sends the same operation again if its policy says so and
  the advice is not to make a fresh plan.

The other refusals that prove "nothing written" are the program's own, from before a request is sent; see
[refusals](refusals.md). "Sent: no" means that no byte can have left; such an operation is unknown all the same, but
nothing has to settle before the next attempt.

An answer is read strictly: UTF-8 without a byte order mark, each key once in its object, finite numbers, at most
{MAX_NESTING} levels of nesting, {MAX_BYTES // 2**20} MiB and {MAX_ITEMS:,} items, as it is or compressed with gzip.

The last column counts the kinds of answers, of a product of all that may matter, that each line decides; a test
compares the verdict of each with one written from the rules alone.

"""


def render() -> str:
    """The page."""
    decided = Counter(
        classify(observe(cell.exchange, read_answer(cell.exchange), cell.expected)).name for cell in cells()
    )
    lines = [
        "| line | how the request ended | status | body | said in it | sent | verdict | refusal | next | kinds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | ---: |",
    ]
    return _HEAD + "\n".join([*lines, *(_line(row, decided[row.name]) for row in TABLE)]) + "\n"


def _line(row: Row, kinds: int) -> str:
    sent = "no" if row.events <= NEVER_SENT else "yes"
    said = _any_of([*(row.findings or ()), *(row.codes or ()), *(row.results or ())])
    cells_of_row = [
        row.name,
        _any_of(row.events),
        _any_of(row.statuses or ()) or _implied(row, "200"),
        _any_of(row.shapes or ()) or _implied(row, "any"),
        said or _implied(row, "any"),
        sent,
        f"**{row.verdict}**" if row.verdict is not Verdict.UNKNOWN else str(row.verdict),
        _refusal(row),
        row.next_action,
        str(kinds),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells_of_row) + " |"


def _implied(row: Row, otherwise: str) -> str:
    """What a line leaves open: nothing at all without an answer; a body is looked at with status 200 alone."""
    if row.events != frozenset({Event.ANSWERED}):
        return "–"
    return otherwise


def _refusal(row: Row) -> str:
    if row.verdict is Verdict.UNWRITTEN:
        return f"`{StaleDestinationIdError.__name__}`"
    return "–" if row.error is None else f"`{row.error.__name__}`"


def _any_of(values: Iterable[str]) -> str:
    return ", ".join(sorted(map(str, values)))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write("wrote docs/classification.md\n")
