"""A schema document with something wrong in it: a schema that can be worked with, or a named refusal."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from consumers.infrahub.connection import InfrahubOpener, declared
from ledger.errors import ApplyLedgerError
from tests.hostile.answers.documents import broken, changed, written
from tests.hostile.answers.generate import an_answer, on_the_wire, whole
from tests.hostile.answers.judged import Judged, leak_in
from tests.hostile.answers.leaks import leaks
from tests.hostile.answers.oracle import Form
from tests.hostile.answers.served import HostileLayer, Served
from tests.hostile.answers.writes import BINDING, FORMS, TOKEN
from tests.support.lab_schema import lab_document
from tests.support.scripted_infrahub import RUN_ID, Guard, lab_settings

_DOCUMENT = lab_document()
_SITE_ID = "18ec9baa-2624-4515-e315-189fdf3551df"


class Schemas:
    """Opens a destination whose schema is odd, and writes one operation by it."""

    async def drawn(self, random: Random) -> Judged:
        """One case from nothing but ``random``."""
        schema = _schema(random)
        form, operation = random.choice(FORMS)
        answer = whole("confirmation", written(random, {"data": {form.field: {"ok": True, "object": _object(form)}}}))
        layer = HostileLayer(lambda request: answer if request.method == "POST" else schema)
        opener = InfrahubOpener(declared(lab_settings(token=TOKEN, attempts=1)), factory=lambda: layer)
        try:
            async with opener(BINDING, run_id=RUN_ID, guard=Guard()) as destination:
                peers = destination.writes.new_peer_resolver()  # type: ignore[union-attr]  # Infrahub's own surface
                peers.remember("LabSite", {"name": "dc1"}, _SITE_ID)
                await destination.writes.apply_planned_operation(operation=operation, peers=peers)  # type: ignore[union-attr]
            said, wrong = "schema used", ""
        except ApplyLedgerError as error:
            said, wrong = f"schema refused, {type(error).__name__}", leak_in(error, TOKEN)
        except Exception as error:  # noqa: BLE001 - whatever else comes out is what is looked for
            said, wrong = "defect", f"{type(error).__name__}: {error}"
        return Judged(f"schema, {schema.name}", said, schema.size, wrong)


def _object(form: Form) -> dict[str, Any]:
    return {"id": form.node_id or "new-1"}


def _schema(random: Random) -> Served:
    if random.random() < 0.2:
        return an_answer(random, Form("nodes", "create", None), TOKEN)
    document: Any = copy.deepcopy(_DOCUMENT)
    for _ in range(random.choice([1, 1, 2, 4])):
        document = changed(random, document, TOKEN)
    text = written(random, document)
    if random.random() < 0.1 and not leaks(text.decode("utf-8", "replace"), TOKEN):
        text = broken(random, text)
    return on_the_wire(random, whole("changed", text))
