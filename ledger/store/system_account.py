"""The account under which the server runs: ``postgres`` and ``initdb`` refuse root, so root hands over to another."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
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
        """Make ``path`` this account's, with ``mode``. Only root can call this for another account than its own."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        path.chmod(mode)

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
