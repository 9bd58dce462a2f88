"""The bench of a real server on the sandbox, in sizes that say nothing: each part works and tells the truth."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import yaml

from consumers.infrahub.sandbox import RunningSandbox
from ledger.store.embedded import Dsns, EmbeddedPostgres
from ledger.store.ledger import Ledger
from tests.bench.frame import Figure, Setting, Target
from tests.bench.live import inventory
from tests.bench.live.__main__ import cases
from tests.bench.live.content import Objects, differences
from tests.bench.live.counting import counted
from tests.bench.live.end_to_end import Comparison
from tests.bench.live.inventory import Inventory
from tests.bench.live.loop_cases import measure_bare_server, measure_ledger_share, measure_write_loop
from tests.bench.live.loops import Loops
from tests.bench.live.place import SYNC, Place
from tests.bench.live.processes import Need, run_measured
from tests.bench.live.sizes import SIZES
from tests.live.infrahub import LiveBranch, LiveInfrahub
from tests.live.inventories import rows_of
from tests.support.real_writer import REAL_SCHEMA, TOKEN

_KIND = "OrganizationManufacturer"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder into which the database's own account can go; pytest's are closed to it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture
def place() -> Iterator[Place]:
    with RunningSandbox(REAL_SCHEMA, token=TOKEN) as sandbox:
        yield Place(LiveInfrahub(sandbox.url, TOKEN), SIZES["tiny"], SYNC)


@pytest.fixture(scope="module")
def dsns() -> Iterator[Dsns]:
    """A ledger as the product starts it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        Path(path).chmod(0o755)
        server = EmbeddedPostgres(Path(path) / "ledger")
        yield asyncio.run(server.ensure_running())
        asyncio.run(server.stop())


async def test_the_loops_write_what_they_are_to_write_and_give_whole_figures(
    place: Place, dsns: Dsns, folder: Path
) -> None:
    async with await Ledger.open(dsns.writer) as ledger:
        loops = Loops(place, dsns, ledger, folder / "plans")
        figures: list[Figure] = []
        for measure in (measure_write_loop, measure_bare_server, measure_ledger_share):
            figures += await measure(loops, 1)

    for figure in figures:
        for series in (figure.value, *figure.beside):
            assert len(series.values) == 1
            assert min(series.values) > 0
    assert [figure.target for figure in figures if figure.target is not None] == [
        Target("at least", 1.25),
        Target("at most", 1.05),
        Target("at most", 1.02),
        Target("at most", 0.02),
    ]
    one = figures[-1]
    parts = {series.label: series.values[0] for series in one.beside[:3]}
    assert sum(parts.values()) == pytest.approx(one.value.values[0])


async def test_the_bare_mutations_are_those_of_our_run_for_other_objects(
    place: Place, dsns: Dsns, folder: Path
) -> None:
    kinds = ("OrganizationManufacturer", "DcimDeviceType", "DcimInterfaceTemplate")
    async with await Ledger.open(dsns.writer) as ledger:
        loops = Loops(place, dsns, ledger, folder / "plans")
        recording = await loops.record()
        before = [kept.body for kept in recording.mutations]
        keeping = _Keeping(place.infrahub.url, TOKEN, is_thrown_away=True)
        loops.place = Place(keeping, place.sizes, place.sync)
        await loops.sent(recording)
        await loops.written()

    (bare, ours) = keeping.made
    counts = [[branch.query(f"{{ {kind} {{ count }} }}")[kind]["count"] for kind in kinds] for branch in (bare, ours)]
    assert counts == [[1, 1, 4], [1, 1, 4]]
    assert len(before) == place.sizes.loop
    names = [_names(branch) for branch in (bare, ours)]
    assert names[0] != names[1]
    assert len(names[0][0]) == len(names[1][0])


async def test_a_comparison_counts_what_passes_and_says_what_only_one_side_has(place: Place, folder: Path) -> None:
    rows = inventory.device_types(place.sizes)
    ours, theirs = _StandIn("ours"), _StandIn("theirs", left_out=1)

    figures = await Comparison(place, rows, folder, theirs, ours).figures(1)

    found = {figure.name.partition(":")[0]: figure for figure in figures}
    assert found["wall time"].value.values == (1.0,)
    assert [series.values for series in found["requests"].beside] == [(3.0,), (4.0,)]
    assert [series.values for series in found["mutations"].beside] == [(3.0,), (4.0,)]
    assert [series.values for series in found["connections"].beside] == [(3.0,), (4.0,)]
    assert found["sent to the server"].beside[1].values[0] == ours.sent[0] > 0
    sameness = found["what the two branches hold differs in"]
    assert sameness.met is False
    assert sameness.remarks == (f"{_KIND}: 1 only ours, such as ('r0-{ours.last}',)",)
    assert [series.values for series in sameness.beside] == [(3.0,), (4.0,)]
    assert len(set(ours.urls)) == 2  # the timed rounds go straight to the server


def test_differences_name_each_field_once_with_an_example() -> None:
    ours: Objects = {("Site", ("a",)): {"name": "a", "size": 1}, ("Site", ("b",)): {"name": "b", "size": 2}}
    theirs: Objects = {("Site", ("a",)): {"name": "a", "size": None}, ("Site", ("b",)): {"name": "b", "size": 3}}

    assert differences(ours, ours) == []
    assert differences(ours, theirs) == ["Site.size: differs in 2, such as ours 1, theirs None"]


async def test_a_child_tells_its_own_memory_and_a_failed_one_is_no_figure(folder: Path) -> None:
    held = bytearray(64 * 1024 * 1024)  # this process is larger than the child
    environment = {"PATH": "/usr/bin:/bin"}

    printed, need = await run_measured(["echo", "hi"], folder=folder, environment=environment, report=folder / "need")

    assert (printed, len(held)) == ("hi\n", 64 * 1024 * 1024)
    assert 0 < need.peak_mib < 32
    assert need.seconds > 0
    with pytest.raises(RuntimeError, match=r"ended with 3\noh"):
        await run_measured(
            ["sh", "-c", "echo oh >&2; exit 3"], folder=folder, environment=environment, report=folder / "need"
        )


def test_an_inventory_has_the_same_rows_for_both_and_other_names_in_each_round(tmp_path: Path) -> None:
    library = inventory.device_types(SIZES["tiny"])
    first, second = (library.rows(tmp_path / prefix, prefix) for prefix in ("r1-", "r2-"))

    names = [[row["model"] for row in rows_of(rows / "dcim.device-types.jsonl")] for rows in (first, second)]
    assert [name.removeprefix("r1-") for name in names[0]] == [name.removeprefix("r2-") for name in names[1]]
    assert set(names[0]).isdisjoint(names[1])
    ours = yaml.safe_load(library.ours(tmp_path / "ours.yml", first).read_text())
    theirs = yaml.safe_load(library.theirs(tmp_path / "theirs.yml", first, url="u", token="t").read_text())
    assert ours["schema_mapping"] == theirs["schema_mapping"]
    assert ours["source"]["settings"] == theirs["source"]["settings"] == {"directory": str(first)}


async def test_what_cannot_be_counted_is_no_count(place: Place) -> None:
    async def in_chunks() -> None:
        async with counted(place.infrahub.url) as traffic, httpx.AsyncClient(trust_env=False) as client:

            async def body() -> AsyncIterator[bytes]:
                yield b"{}"

            await client.post(f"{traffic.url}/graphql/main", content=body())

    with pytest.raises(RuntimeError, match="could not be counted"):
        await in_chunks()


@pytest.mark.live
@pytest.mark.timeout(600)
def test_infrahub_sync_and_ours_leave_the_same_objects_on_a_real_server(
    live_infrahub: LiveInfrahub, folder: Path
) -> None:
    (case, *_) = cases(Place(live_infrahub, SIZES["tiny"], SYNC))

    figures = case.measure(Setting(rounds=1, scratch=folder, smoke=True))

    found = {figure.name.partition(":")[0]: figure for figure in figures}
    assert found["what the two branches hold differs in"].remarks == ()
    assert found["mutations"].value.values == (1.0,)
    for series in (series for name in ("wall time", "peak memory") for series in found[name].beside):
        assert min(series.values) > 0


@dataclass
class _StandIn:
    """Writes manufacturers one by one, each over a connection of its own."""

    label: str
    left_out: int = 0
    last: str = ""
    urls: list[str] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    async def prepare(self, inventory: Inventory, rows: Path, branch: LiveBranch) -> None:
        """Nothing."""

    async def bring(self, inventory: Inventory, rows: Path, branch: LiveBranch, *, url: str) -> Need:
        names = [row["name"] for row in rows_of(rows / "dcim.manufacturers.jsonl")]
        self.urls.append(url)
        self.last = self.last or names[-1].removeprefix("r0-")
        sent = 0
        for name in names[: len(names) - self.left_out]:
            async with httpx.AsyncClient(
                trust_env=False, verify=False, headers={"X-INFRAHUB-KEY": branch.token}
            ) as client:
                query = f'mutation {{ {_KIND}Upsert(data: {{name: {{value: "{name}"}}}}) {{ ok }} }}'
                answer = await client.post(f"{url}/graphql/{branch.name}", json={"query": query})
                assert "errors" not in answer.json()
                sent += _on_the_wire(answer.request)
        self.sent.append(sent)
        return Need(1.0, 1.0, 1.0)


def _on_the_wire(request: httpx.Request) -> int:
    """Bytes of a request: its line, its headers and its body."""
    line = f"{request.method} {request.url.raw_path.decode()} HTTP/1.1\r\n"
    headers = sum(len(name) + len(value) + 4 for name, value in request.headers.raw)
    return len(line) + headers + 2 + len(request.content)


def _names(branch: LiveBranch) -> list[str]:
    edges = branch.query(f"{{ {_KIND} {{ edges {{ node {{ name {{ value }} }} }} }} }}")[_KIND]["edges"]
    return [edge["node"]["name"]["value"] for edge in edges]


@dataclass(frozen=True)
class _Keeping(LiveInfrahub):
    """Its branches outlive their measurement, so that a test can look at them."""

    made: list[LiveBranch] = field(default_factory=list)

    def new_branch(self, prefix: str = "test") -> LiveBranch:
        self.made.append(super().new_branch(prefix))
        return self.made[-1]
