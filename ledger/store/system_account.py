"""The account under which the server runs: ``postgres`` and ``initdb`` refuse root, so root hands over to another."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from ledger.store.embedded_errors import SystemAccountError

ACCOUNT_NAME = "apply-ledger"


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """A system account that is not root."""

    name: str
    uid: int
    gid: int

    def take(self, path: Path, *, mode: int) -> None:
        """Make ``path`` this account's, with ``mode``; only root can do so for another account than its own.

        Raises:
            OSError: ``path`` is a link, or the operation is not permitted.
        """
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            os.fchmod(handle, mode)
            os.fchown(handle, self.uid, self.gid)
        finally:
            os.close(handle)

    def write_private(self, path: Path, text: str) -> None:
        """Put ``text`` at ``path``, durably and whole, readable by this account alone.

        Through a new file and a rename: in a folder of another account a path may be a link to anywhere.
        """
        handle, beside = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                os.fchmod(stream.fileno(), 0o600)
                if os.geteuid() != self.uid:
                    os.fchown(stream.fileno(), self.uid, self.gid)
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            Path(beside).replace(path)
        except BaseException:  # whatever it was, no half-written secret stays behind
            Path(beside).unlink(missing_ok=True)
            raise

    def can_enter(self, folder: Path) -> bool:
        """Whether this account may pass through every parent of ``folder`` and ``folder`` itself."""
        answer = subprocess.run(
            ["/bin/sh", "-c", 'cd -- "$0"', str(folder)],
            check=False,
            capture_output=True,
            timeout=30,
            cwd="/",
            **self.process_options(),
        )
        return answer.returncode == 0

    def process_options(self) -> dict[str, Any]:
        """Arguments for :func:`subprocess.run` that start the child as this account, without root's groups."""
        if os.geteuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def server_account() -> ServerAccount:
    """The account the server runs under: our own, or a dedicated one when we are root (made if it is missing).

    Raises:
        SystemAccountError: we are root and the account neither exists nor can be made.
    """
    if os.geteuid() != 0:
        return ServerAccount(name=str(os.geteuid()), uid=os.geteuid(), gid=os.getegid())
    account = _existing(ACCOUNT_NAME) or _create(ACCOUNT_NAME)
    if account is None or account.uid == 0:
        raise SystemAccountError(
            checked="the system account under which the embedded PostgreSQL runs when started as root",
            expected=f"an account named {ACCOUNT_NAME!r} other than root",
            found="none, and useradd could not make one" if account is None else "an account with root's number",
            next_action=(
                f"make it with 'useradd --system --user-group {ACCOUNT_NAME}', run as an ordinary user, or set"
                " APPLY_LEDGER_DSN to another PostgreSQL"
            ),
        )
    return account


def _existing(name: str) -> ServerAccount | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return ServerAccount(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


# Two processes may add the account at once: the loser finds /etc/passwd locked, and then the account made.
@retry(
    stop=stop_after_delay(10),
    wait=wait_fixed(0.2),
    retry=retry_if_result(lambda account: account is None),
    retry_error_callback=lambda _: None,
)
def _create(name: str) -> ServerAccount | None:
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        return None
    subprocess.run(
        [program, "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name],
        check=False,
        capture_output=True,
        timeout=30,
    )
    return _existing(name)
