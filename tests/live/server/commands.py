"""The command lines, settings and variables of the three processes: loopback only, nothing of the user's passed on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.live.server.installation import java

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "06438eb2-8019-4776-878c-0941b1f1d1ec"
"""The administrator's token of a server that is thrown away and listens on loopback alone."""
_AGENT = "44af444d-3b26-410d-9546-b758657e026c"
_HEAP = ("-Xms512m", "-Xmx2g", "-XX:+UseParallelGC")
_OPENED = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")
_FOREIGN = ("INFRAHUB", "PREFECT_", "APPLY_LEDGER_", "PYTHON", "PIP_")

_NEO4J = """\
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{port}
server.bolt.advertised_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
dbms.security.auth_enabled=false
dbms.usage_report.enabled=false
server.memory.pagecache.size=256m
db.tx_log.preallocate=false
db.logs.query.enabled=OFF
server.logs.gc.enabled=false
"""


@dataclass(frozen=True)
class Ports:
    """Where the processes listen; kept across kills, so that whoever was connected finds them again."""

    bolt: int
    prefect: int
    api: int

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self.api}"


@dataclass(frozen=True)
class Commands:
    """What is run, for one installation and one folder of data."""

    home: Path
    run: Path
    ports: Ports

    @property
    def _python(self) -> str:
        return str(self.home / "venv/bin/python")

    def write_settings(self) -> None:
        """The folders and Neo4j's settings file."""
        for name in ("conf", "data", "logs", "plugins", "run", "import", "licenses"):
            (self.run / "neo4j" / name).mkdir(parents=True, exist_ok=True)
        for name in ("prefect", "storage", "repositories"):
            (self.run / name).mkdir(parents=True, exist_ok=True)
        (self.run / "neo4j/conf/neo4j.conf").write_text(_NEO4J.format(port=self.ports.bolt), encoding="ascii")

    def neo4j(self) -> list[str]:
        """The database."""
        folder = self.run / "neo4j"
        flags = [*_HEAP, "-Dio.netty.tryReflectionSetAccessible=true", "-Dlog4j2.disable.jmx=true"]
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        main = ["-cp", f"{self.home / 'jars'}/*", "org.neo4j.server.CommunityEntryPoint"]
        folders = [f"--home-dir={folder}", f"--config-dir={folder / 'conf'}", "--console-mode"]
        return [java(), *flags, *opened, *main, *folders]

    def prefect(self) -> list[str]:
        """The workflow server. The API would start one that outlives it, so it is started here and ended here."""
        app = "infrahub.prefect_server.app:create_infrahub_prefect()"
        worker = ["-k", "uvicorn.workers.UvicornWorker", "-b", f"127.0.0.1:{self.ports.prefect}"]
        return [self._python, "-m", "gunicorn", *worker, app]

    def api(self) -> list[str]:
        """The API."""
        return [self._python, "-m", "tests.live.server.api_process", str(self.ports.api), str(self.ports.bolt)]

    def environment(self) -> dict[str, str]:
        """Variables of the Python processes."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_FOREIGN) and not name.lower().endswith("_proxy")
        }
        return (
            kept
            | self._prefect_variables()
            | self._infrahub_variables()
            | {
                "PATH": f"{self.home / 'venv/bin'}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "DO_NOT_TRACK": "1",
            }
        )

    def _prefect_variables(self) -> dict[str, str]:
        return {
            "PREFECT_HOME": str(self.run / "prefect"),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.ports.prefect}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_UI_ENABLED": "false",
            "PREFECT_LOGGING_SERVER_LEVEL": "ERROR",
            "PREFECT_SERVER_API_MAX_PARAMETER_SIZE": str(32 * 1024 * 1024),
        }

    def _infrahub_variables(self) -> dict[str, str]:
        return {
            "INFRAHUB_ADDRESS": self.ports.url,
            "INFRAHUB_INTERNAL_ADDRESS": self.ports.url,
            "INFRAHUB_API_TOKEN": _AGENT,
            "INFRAHUB_INITIAL_ADMIN_TOKEN": TOKEN,
            "INFRAHUB_INITIAL_ADMIN_PASSWORD": TOKEN,
            "INFRAHUB_INITIAL_AGENT_TOKEN": _AGENT,
            "INFRAHUB_SECURITY_SECRET_KEY": "327f747f-efac-42be-9e73-999f08f86b92",
            "INFRAHUB_TELEMETRY_OPTOUT": "true",
            "INFRAHUB_WORKFLOW_DRIVER": "local",
            "INFRAHUB_WORKFLOW_ADDRESS": "127.0.0.1",
            "INFRAHUB_WORKFLOW_PORT": str(self.ports.prefect),
            "INFRAHUB_STORAGE_LOCAL_PATH": str(self.run / "storage"),
            "INFRAHUB_GIT_REPOSITORIES_DIRECTORY": str(self.run / "repositories"),
            "INFRAHUB_GIT_GLOBAL_CONFIG_FILE": str(self.run / "gitconfig"),
            "INFRAHUB_DB_ADDRESS": "127.0.0.1",
            "INFRAHUB_DB_PORT": str(self.ports.bolt),
            "INFRAHUB_DB_USERNAME": "neo4j",
            "INFRAHUB_DB_PASSWORD": "admin",
        }
