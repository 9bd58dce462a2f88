"""One write against one hostile answer: what the write surface said, and whether that may be said."""

from __future__ import annotations

from random import Random

from consumers.infrahub.own_ids import own_node_id
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.binding import DestinationBinding
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from ledger.plan.model import PlannedOperation
from tests.hostile.answers.documents import broken, changed, written
from tests.hostile.answers.generate import an_answer, on_the_wire, whole
from tests.hostile.answers.judged import Judged, leak_in
from tests.hostile.answers.oracle import Form, is_read_back, may_be_said
from tests.hostile.answers.served import HostileLayer, Served
from tests.support.lab_schema import lab_document
from tests.support.operations import create, one, update
from tests.support.scripted_infrahub import RUN_ID, URL

TOKEN = "CANARY_7F3A9C2E51D84B60_TOKEN"
"""Looks like a code, so that a place for codes must not be trusted either."""

BINDING = DestinationBinding(url=URL, branch="lab1")
_SITE_ID = "18ec9baa-2624-4515-e315-189fdf3551df"
_PLACE = {"peer_kind": "LabSite", "identity": {"name": "dc1"}}
_VLAN = create("LabVlan", {"vid": 7, "place": _PLACE}, {"vid": 7}, one("place", "LabSite", name="dc1"))
_OWN_ID = own_node_id(BINDING, run_id=RUN_ID, operation_id=_VLAN.operation_id)

FORMS: tuple[tuple[Form, PlannedOperation], ...] = (
    (
        Form("LabSiteUpsert", "update", _SITE_ID),
        update("LabSite", {"name": "a"}, {"name": "a", "description": "b"}, destination_id=_SITE_ID),
    ),
    (Form("LabSiteUpsert", "create", None), create("LabSite", {"name": "a"}, {"name": "a"})),
    (Form("LabVlanCreate", "create", _OWN_ID), _VLAN),
)

SCHEMA = whole("schema", written(Random(0), lab_document()))


class Writes:
    """A write surface whose destination answers whatever it is told to."""

    def __init__(self, surface: InfrahubWriteSurface, layer: HostileLayer) -> None:
        self._surface = surface
        self._layer = layer

    async def drawn(self, random: Random) -> Judged:
        """One case from nothing but ``random``."""
        form, operation = random.choice(FORMS)
        return await self.judged(form, operation, an_answer(random, form, TOKEN), _read_back(random))

    async def judged(self, form: Form, operation: PlannedOperation, answer: Served, second: Served) -> Judged:
        """One case: ``answer`` to the write as often as it is sent, ``second`` to the question for our own id."""
        self._layer.requests.clear()
        self._layer.answer = lambda request: second if b'"query":"query' in request.content else answer
        may = may_be_said(form, answer, TOKEN)
        if may == "read back":
            may = "applied" if is_read_back("LabVlan", _OWN_ID, second, TOKEN) else "unknown"
        peers = self._surface.new_peer_resolver()
        peers.remember("LabSite", {"name": "dc1"}, _SITE_ID)
        try:
            node_id = await self._surface.apply_planned_operation(operation=operation, peers=peers)
            said, wrong = "applied", "" if node_id == (form.node_id or node_id) else "another id is returned"
        except ProvenUnwrittenError as error:
            said, wrong = "unwritten", leak_in(error, TOKEN)
        except OutcomeUnknownError as error:
            said, wrong = "unknown", leak_in(error, TOKEN)
            if error.sent != answer.left:
                wrong = wrong or f"called {'sent' if error.sent else 'unsent'}"
        except Exception as error:  # noqa: BLE001 - whatever else comes out is what is looked for
            said, wrong = "defect", f"{type(error).__name__}: {error}"
        if said != may:
            wrong = f"said {said}, may be said: {may}; {wrong}"
        return Judged(answer.name, said, answer.size, wrong or self._sent_too_often(answer))

    def _sent_too_often(self, answer: Served) -> str:
        """A write goes out once; again only what provably never ran (FF24)."""
        sent = [request for request in self._layer.requests if b'"query":"mutation' in request.content]
        never_ran = answer.status == 429 or (answer.fault is not None and not answer.left)
        return "" if len(sent) == 1 or (never_ran and len(sent) == 2) else f"sent {len(sent)} times"


def _read_back(random: Random) -> Served:
    """The answer to the question for our own id, right in half of all cases."""
    document = {"data": {"LabVlan": {"count": 1, "edges": [{"node": {"id": _OWN_ID}}]}}}
    if random.random() < 0.5:
        return whole("read back", written(random, document))
    text = written(random, changed(random, document, TOKEN))
    return on_the_wire(random, whole("read back, changed", broken(random, text) if random.random() < 0.3 else text))
