"""A writer whose run directories are in an object store: the same promises, the same verdicts."""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from consumers.errors import ArtifactLocationError
from consumers.runs import RunOutcome
from ledger.commit import PlanCommit
from ledger.plan.errors import ArtifactInStoreDiffersError, ArtifactStoreAwayError
from ledger.plan.layout import MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.object_store import ObjectStore, fetched_run
from producers.errors import AlteredPlanError
from producers.stored_runs import store_run
from tests.support.committed_plans import commit_of, in_order, save, tag
from tests.support.real_writer import RealWriter
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.integration]

RUN = "20261129T1900-0000000a"


def saved(real: RealWriter, run_id: str = RUN, *names: str) -> PlanCommit:
    """A plan on the host that commits, below ``here``."""
    root = real.root / "here"
    operations = in_order([tag(name) for name in names or ("one", "two")])
    return commit_of(root, save(root, run_id, operations, binding=real.binding), binding=real.binding)


def elsewhere(real: RealWriter, store: ObjectStore) -> RealWriter:
    """A writer on another host: it has the store and no folder."""
    return replace(real, changes={"artifact_root": store})


async def apply(real: RealWriter, commit: PlanCommit) -> RunOutcome:
    await real.submit(commit)
    return await real.writer().drain(commit.run_id, by="test", interrupted=asyncio.Event(), leave=asyncio.Event())


def refusals(outcome: RunOutcome) -> set[str]:
    assert outcome.ending == "plan.refused"
    return {finding.name for finding in outcome.findings}


@pytest.mark.rules("G1", "G7")
async def test_g01_a_run_that_was_stored_is_applied_on_a_host_that_has_no_folder(
    real: RealWriter, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setenv("TMPDIR", str(copies))
    commit = saved(real)
    assert store_run(store, real.root / "here", commit) is True
    assert store_run(store, real.root / "here", commit) is False
    outcome = await apply(elsewhere(real, store), commit)
    assert outcome.ending == "run.applied"
    assert list(copies.iterdir()) == []


@pytest.mark.rules("G1")
async def test_g01_an_object_that_was_changed_after_the_commit_is_refused(
    real: RealWriter, store: ObjectStore, s3: S3Server
) -> None:
    commit = saved(real)
    store_run(store, real.root / "here", commit)
    key = store.key(f"{commit.artifact}/{OPERATIONS_FILE}")
    s3.call("PUT", key, s3.call("GET", key).replace(b"two", b"twx"))
    found = refusals(await apply(elsewhere(real, store), commit))
    assert "ArtifactDigestMismatchError" in found
    assert real.sent() == []


@pytest.mark.rules("G1")
async def test_g01_what_happens_to_the_objects_after_they_were_fetched_changes_nothing(
    store: ObjectStore, s3: S3Server, real: RealWriter, tmp_path: Path
) -> None:
    commit = saved(real)
    store_run(store, real.root / "here", commit)
    before = (real.root / "here" / commit.artifact / OPERATIONS_FILE).read_bytes()
    with fetched_run(store, commit.artifact, within=tmp_path) as root:
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
        s3.call("PUT", store.key(f"{commit.artifact}/{OPERATIONS_FILE}"), b"{}\n")
        assert (root / commit.artifact / OPERATIONS_FILE).read_bytes() == before
    assert not root.exists()


@pytest.mark.rules("G1", "G11")
@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ((OPERATIONS_FILE, MANIFEST_FILE), "PlanArtifactAbsentError"),
        ((MANIFEST_FILE,), "format_version"),
        ((OPERATIONS_FILE,), "operations"),
    ],
)
async def test_g11_a_run_that_is_missing_or_half_there_is_refused_by_name(
    real: RealWriter, store: ObjectStore, s3: S3Server, gone: tuple[str, ...], told: str
) -> None:
    commit = saved(real)
    store_run(store, real.root / "here", commit)
    for name in gone:
        s3.call("DELETE", store.key(f"{commit.artifact}/{name}"))
    assert told in refusals(await apply(elsewhere(real, store), commit))
    assert real.sent() == []


@pytest.mark.rules("G11")
async def test_g11_a_store_that_is_away_leaves_the_order_open_and_the_run_goes_on_when_it_is_back(
    real: RealWriter, store: ObjectStore, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = saved(real)
    store_run(store, real.root / "here", commit)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(ArtifactStoreAwayError, match="s3://"):
        await apply(elsewhere(real, store), commit)
    assert [event.kind for event in await real.events(RUN)] == ["plan.committed"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    assert (await apply(elsewhere(real, store), commit)).ending == "run.applied"


@pytest.mark.rules("G1", "G12")
@pytest.mark.parametrize(
    "location", ["../other/sync/run", "/etc", "sync/../../run", "s3://other-bucket/sync/run", "sync//run"]
)
async def test_g01_a_commit_cannot_name_another_bucket_or_leave_the_prefix(
    real: RealWriter, store: ObjectStore, location: str
) -> None:
    commit = saved(real)
    store_run(store, real.root / "here", commit)
    outcome = await apply(elsewhere(real, store), commit.model_copy(update={"artifact": location}))
    assert refusals(outcome) == {ArtifactLocationError.__name__}


@pytest.mark.rules("G1")
async def test_g01_a_stored_plan_is_never_replaced_and_a_half_stored_one_is_completed(
    real: RealWriter, store: ObjectStore, s3: S3Server
) -> None:
    commit = saved(real)
    root = real.root / "here"
    store_run(store, root, commit)
    manifest = store.key(f"{commit.artifact}/{MANIFEST_FILE}")
    whole = s3.call("GET", manifest)
    s3.call("DELETE", manifest)
    assert store_run(store, root, commit) is True
    assert s3.call("GET", manifest) == whole
    s3.call("PUT", manifest, whole.replace(b"0", b"1"))
    with pytest.raises(ArtifactInStoreDiffersError):
        store_run(store, root, commit)
    with pytest.raises(AlteredPlanError):
        store_run(store, root, commit.model_copy(update={"artifact_digest": "0" * 64}))


@pytest.mark.rules("G11", "G12")
async def test_g12_a_bucket_that_is_not_there_is_trouble_of_the_store_and_no_key_is_shown(
    real: RealWriter, store: ObjectStore
) -> None:
    commit, nowhere = saved(real), replace(store, bucket="no-such-bucket")
    with pytest.raises(ArtifactStoreAwayError) as refused:
        await apply(elsewhere(real, nowhere), commit)
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in str(refused.value)
    assert [event.kind for event in await real.events(RUN)] == ["plan.committed"]
    with pytest.raises(ArtifactStoreAwayError):
        nowhere.holds(commit.artifact)
    with pytest.raises(ArtifactStoreAwayError):
        store_run(nowhere, real.root / "here", commit)
