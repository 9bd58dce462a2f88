"""The system comes to rest: nothing is disturbed any more, and one healthy writer carries out what is left."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from pathlib import Path

from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared
from consumers.settings import WriterSettings
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.commit import Policy
from ledger.store.errors import LeaseHeldError, RunFinishedError, RunStillOpenError
from ledger.store.ledger import Ledger
from tests.faults.campaign.operator_process import give
from tests.faults.campaign.runs import Committed
from tests.faults.campaign.trail import Trail
from tests.faults.campaign.writer_process import NamedTransport, Stand, noting_connector
from tests.support.real_writer import TOKEN

_WITHIN = 40.0


async def come_to_rest(
    dsn: str, url: str, folder: Path, runs: Sequence[Committed], times: dict[str, float]
) -> list[str]:
    """Commit everything once more, and resume each run until it is applied or it is certain that it cannot be."""
    patient = {**times, "request_timeout": 5.0, "lease_ttl": 8.0}
    settings = WriterSettings(artifact_root=folder / "runs", **patient)
    trail, wrong = Trail(folder / "last.trail"), []
    async with await Ledger.open(dsn) as ledger:
        for run in runs:
            await give(ledger, run.commit.binding, "commit", run.commit, run.commit.policy)
        for run in runs:
            writer = _writer(dsn, url, Stand("last", run.branch, trail), settings)
            try:
                async with asyncio.timeout(_WITHIN):
                    await _carry_out(ledger, writer, run)
            except TimeoutError:
                wrong.append(f"run {run.files.run_id} did not come to rest within {_WITHIN:g} s")
            except Exception:  # noqa: BLE001 - a defect of the product or of the campaign: reported with its traceback
                wrong.append(f"run {run.files.run_id} at rest: {traceback.format_exc()}")
    return wrong


async def _carry_out(ledger: Ledger, writer: BindingWriter, run: Committed) -> None:
    policy = Policy(on_unknown="converge", allow_stale=run.script.resume_stale)
    before = ""
    while (ending := await _drained(writer, run.files.run_id)) not in ("run.applied", before):
        # the same end twice over: it stays so
        stays = ending in ("run.failed", "plan.refused") or run.files.doomed is not None
        before = ending if stays else ""
        try:
            await give(ledger, run.commit.binding, "resume", run.commit, policy)
        except RunFinishedError:
            return
        except RunStillOpenError:
            continue


async def _drained(writer: BindingWriter, run_id: str) -> str:
    while True:
        try:
            return (await writer.drain(run_id, by="the campaign")).ending
        except LeaseHeldError as held:
            await asyncio.sleep(max(0.01, float(held.facts.get("seconds", 0.05))))


def _writer(dsn: str, url: str, stand: Stand, settings: WriterSettings) -> BindingWriter:
    infrahub = InfrahubSettings(
        url=url, branch=stand.branch, token=SecretStr(TOKEN), request_timeout=settings.request_timeout
    )
    return BindingWriter(
        dsn,
        DestinationBinding(url=url, branch=stand.branch),
        InfrahubOpener(declared(infrahub), factory=lambda: NamedTransport(stand)),
        settings,
        connect=noting_connector(settings, stand),
        pause=stand,
    )
