"""Run directories in an object store: ``s3://bucket/prefix/<sync name>/<run id>/`` (design 5).

Whoever commits a run puts there what an apply reads, the manifest last: a run that has one is whole. A writer fetches a
run once, each object once, into a folder that only it may open; everything that is verified and applied is read from
there, so what happens to the objects later changes nothing (G1). Keys are made of checked path segments below the
prefix, never of what a message says.

Credentials come from where every tool of such stores finds them (``AWS_ACCESS_KEY_ID``, ``AWS_PROFILE`` and their
kin), never from settings of ours and never from the address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

from ledger.errors import ConfigurationError
from ledger.plan.checksum import artifact_digest
from ledger.plan.errors import ArtifactInStoreDiffersError, ArtifactStoreAwayError, PlanCopyFailedError
from ledger.plan.files import open_regular, require_inside, unreadable
from ledger.plan.layout import COVERAGE_FILE, MANIFEST_FILE, OPERATIONS_FILE, SOURCE_SIDE
from ledger.plan.private_copy import MAX_COPIED_BYTES, PrivateCopy
from ledger.plan.private_folder import private_folder

if TYPE_CHECKING:
    from ledger.plan.reader import RawPlanArtifact

PLAN_FILES: Final = (OPERATIONS_FILE, COVERAGE_FILE, MANIFEST_FILE)
"""In the order in which they are stored: the manifest says that the rest is there."""

MAX_OBJECTS: Final = 10_000
"""Of one run. More are no run of this program."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]{0,127}")
_CHUNK: Final = 1024 * 1024
_CONNECT_SECONDS, _REQUEST_SECONDS, _ATTEMPTS = 5.0, 30.0, 3


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A place for run directories. ``prefix`` is empty or segments joined by ``/``."""

    bucket: str
    prefix: str = ""

    @classmethod
    def at(cls, address: str) -> ObjectStore:
        """The store at ``s3://bucket/prefix``.

        Raises:
            ConfigurationError: anything else: another scheme, credentials, a query, unusual names.
        """
        try:
            parts = urlsplit(address)
            segments = [segment for segment in parts.path.strip("/").split("/") if segment]
            usable = (
                parts.scheme == "s3"
                and not (parts.query or parts.fragment)
                and _BUCKET.fullmatch(parts.netloc) is not None
                and all(_SEGMENT.fullmatch(segment) for segment in segments)
            )
        except ValueError:
            usable = False
        if not usable:
            raise ConfigurationError(
                checked="artifact_store",
                expected="s3://bucket or s3://bucket/prefix, without credentials, query or '..'",
                found="something else (not shown: it may hold a secret)",
                next_action="correct APPLY_LEDGER_ARTIFACT_STORE; keys go into AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, another server's address into AWS_ENDPOINT_URL",
            )
        return cls(parts.netloc, "/".join(segments))

    def __str__(self) -> str:
        return f"s3://{self.key('')}".rstrip("/")

    def key(self, relative: str) -> str:
        """Bucket and key of something below the prefix.

        Raises:
            PathOutsideRunError: ``relative`` leads out of it.
        """
        return "/".join(filter(None, (self.bucket, self.prefix, relative and str(require_inside(relative)))))

    def holds(self, artifact: str) -> bool:
        """Whether a whole run stands there.

        Raises:
            ArtifactStoreAwayError: the store does not say.
            PathOutsideRunError: the location leads out.
        """
        with _answers(self):
            found = bool(_files().get_file_info(self.key(f"{artifact}/{MANIFEST_FILE}")).is_file)
            if not found:
                self._require_bucket()
            return found

    def fetch(self, artifact: str, folder: Path, *, within: Path) -> None:
        """Put the run directory ``artifact`` below ``folder``; what is not in the store is not there either.

        ``within`` is the folder for temporary files in which ``folder`` was made: the one that a message names.

        Raises:
            ArtifactStoreAwayError: the store does not answer; what is in ``folder`` is nothing to go by.
            PathOutsideRunError: the location leads out.
            PlanArtifactUnreadableError: an object has a size or a number that no run has.
            PlanCopyFailedError: the folder has no room.
        """
        with _answers(self):
            for relative, size in self._objects(artifact).items():
                path = folder / artifact / relative
                if relative in PLAN_FILES and size > MAX_COPIED_BYTES:
                    raise unreadable(path, f"more than {MAX_COPIED_BYTES} bytes")
                with _room_in(within, path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    target = path.open("xb")
                with target, _files().open_input_stream(self.key(f"{artifact}/{relative}")) as source:
                    while data := source.read(_CHUNK):
                        with _room_in(within, path):
                            target.write(data)

    def publish(self, artifact: str, raw: RawPlanArtifact, snapshots: Mapping[str, Path]) -> bool:
        """Store a run for writers elsewhere, unless it is there already; False where it was.

        Args:
            artifact: ``<sync name>/<run id>``.
            raw: the plan's bytes, as they are committed.
            snapshots: of the source side, by their path in the run directory.

        Raises:
            ArtifactStoreAwayError: the store does not answer; doing it again is safe.
            ArtifactInStoreDiffersError: another plan stands there.
            PathOutsideRunError: the location leads out.
        """
        with _answers(self):
            there = self._objects(artifact)
            if MANIFEST_FILE in there and self._stored_digest(artifact) != raw.artifact_digest:
                raise _differs(f"{self}/{artifact}", raw.artifact_digest)
            wanted = {path: file.stat().st_size for path, file in snapshots.items()} | {
                path: len(data) for path, data in _plan_files(raw)
            }
            if all(there.get(path) == size for path, size in wanted.items()):
                return False
            for path, file in snapshots.items():
                self._store(f"{artifact}/{path}", _chunks_of(file))
            for path, data in _plan_files(raw):
                self._store(f"{artifact}/{path}", data.chunks())
        return True

    def _objects(self, artifact: str) -> dict[str, int]:
        """Sizes of what belongs to a run, by path in its directory; anything else there is none of ours."""
        from pyarrow.fs import FileSelector, FileType

        base = self.key(artifact)
        found = _files().get_file_info(FileSelector(base, recursive=True, allow_not_found=True))
        sizes = {info.path[len(base) + 1 :]: int(info.size) for info in found if info.type == FileType.File}
        ours = {path: size for path, size in sizes.items() if _is_of_run(path)}
        if not sizes:
            self._require_bucket()
        if len(ours) > MAX_OBJECTS:
            raise unreadable(Path(base), f"{len(ours):,} objects")
        return ours

    def _require_bucket(self) -> None:
        """Nothing at all is also what a bucket that is not there looks like; that would be no verdict on a plan."""
        from pyarrow.fs import FileType

        if _files().get_file_info(self.bucket).type == FileType.NotFound:
            raise FileNotFoundError(f"no bucket {self.bucket}")

    def _stored_digest(self, artifact: str) -> str:
        files, parts = _files(), []
        for name in (MANIFEST_FILE, OPERATIONS_FILE):
            try:
                with files.open_input_stream(self.key(f"{artifact}/{name}")) as source:
                    parts.append(PrivateCopy.read_from(source, path=Path(name)))
            except FileNotFoundError:
                parts.append(PrivateCopy())
        return artifact_digest(parts[0].read(), parts[1])

    def _store(self, relative: str, chunks: Iterator[bytes]) -> None:
        with _files().open_output_stream(self.key(relative)) as target:
            for chunk in chunks:
                target.write(chunk)


def _is_of_run(path: str) -> bool:
    side, _, name = path.partition("/")
    return path in PLAN_FILES or (side == SOURCE_SIDE and bool(_SEGMENT.fullmatch(name)))


def _plan_files(raw: RawPlanArtifact) -> Iterator[tuple[str, PrivateCopy]]:
    yield OPERATIONS_FILE, raw.operations
    if raw.coverage is not None:
        yield COVERAGE_FILE, raw.coverage
    yield MANIFEST_FILE, PrivateCopy(raw.manifest_bytes)


def _chunks_of(path: Path) -> Iterator[bytes]:
    file = open_regular(path)
    if file is None:
        raise unreadable(path, "nothing")
    with file:
        while data := file.read(_CHUNK):
            yield data


def _server() -> SplitResult:
    """The address of another server than Amazon's; pyarrow leaves these two variables to its caller."""
    address = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    try:
        parts = urlsplit(address)
        usable = not address or (parts.scheme in ("http", "https") and parts.netloc != "" and "@" not in parts.netloc)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(
            checked="AWS_ENDPOINT_URL",
            expected="http://host:port or https://host:port, without credentials",
            found="something else (not shown: it may hold a secret)",
            next_action="correct the variable",
        )
    return parts


def _files() -> Any:
    """A client of its own for each use: one that a thread is waiting in must not be another's."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    server = _server()
    return S3FileSystem(
        endpoint_override=server.netloc or None,
        scheme=server.scheme or "https",
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or None,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        allow_bucket_creation=False,
        allow_bucket_deletion=False,
    )


@contextmanager
def _answers(store: ObjectStore) -> Iterator[None]:
    """Whatever the client reports is trouble of the store, the network or our account: never a verdict on a plan."""
    try:
        yield
    except OSError as exc:
        raise ArtifactStoreAwayError(
            checked=f"the artifact store {store}",
            expected="that it answers, and lets this account read and write below the prefix",
            found=_reason(exc),
            next_action="check address (AWS_ENDPOINT_URL), region, credentials and rights; orders wait meanwhile",
        ) from exc


def _reason(exc: OSError) -> str:
    told = re.search(r"AWS Error (\w+)[^:]*:(.*)", str(exc), re.DOTALL)
    return f"{told[1]}:{told[2][:200]}" if told else f"{type(exc).__name__}: {str(exc)[:200]}"


@contextmanager
def _room_in(folder: Path, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise PlanCopyFailedError(
            checked=f"copying {path.name} of a run into the folder for temporary files {folder}",
            expected="room for a private copy, from which the plan is then read",
            found=exc.strerror or type(exc).__name__,
            next_action=f"make space in {folder}, or name another folder in TMPDIR",
        ) from exc


def _differs(place: str, digest: str) -> ArtifactInStoreDiffersError:
    return ArtifactInStoreDiffersError(
        checked=f"what stands at {place}",
        expected=f"nothing, or the plan that is committed now (digest {digest})",
        found="another plan",
        next_action="commit the run from where it was planned; a stored plan is never replaced",
    )


@contextmanager
def fetched_run(root: Path | ObjectStore, artifact: str, *, within: Path) -> Iterator[Path]:
    """A root below which the run is: the folder itself, or a private copy that is gone at the end of the block.

    Args:
        root: where the runs are.
        artifact: ``<sync name>/<run id>``, as a commit says; it may say anything.
        within: a folder for temporary files.

    Raises:
        As :meth:`ObjectStore.fetch`.
    """
    if isinstance(root, Path):
        yield root
        return
    with ExitStack() as stack:
        with _room_in(within, Path(artifact)):
            folder = stack.enter_context(private_folder(within))
        root.fetch(artifact, folder, within=within)
        yield folder
