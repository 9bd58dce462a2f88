"""Real Apache Kafka brokers on loopback: KRaft, broker and controller in one process, jars from Maven.

with KafkaCluster(broker_jars(), tmp_path, brokers=1) as kafka:
    AIOKafkaProducer(bootstrap_servers=kafka.bootstrap())
"""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

POM = Path(__file__).parent / "kafka" / "pom.xml"
HOST = "127.0.0.1"
CONTROLLER = "CONTROLLER"
CLUSTER_ID = "integration-tests-0000"  # any 16 bytes in URL-safe base64
# C1 alone and the serial collector: a short-lived broker starts a third sooner.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
QUIET_LOG = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


class KafkaStartError(RuntimeError):
    """A broker exited, or did not answer in time; the message holds the end of its log."""


def broker_jars() -> Path:
    """The folder of the broker's jars; Maven fills it where it is missing or older than the pom.

    Raises:
        KafkaStartError: Maven failed; its output is in the message.
    """
    jars = POM.parent / "target" / "jars"
    if not jars.is_dir() or jars.stat().st_mtime < POM.stat().st_mtime:
        done = subprocess.run(
            ["mvn", "-B", "-q", "package"], cwd=POM.parent, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise KafkaStartError(f"mvn package failed\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        jars.touch()
    return jars


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, from below the kernel's ephemeral range.

    A port from the ephemeral range could be taken by any outgoing connection while its broker
    is down, and a client that keeps dialling a dead one can even connect to itself.
    """
    ports: list[int] = []
    for port in random.sample(range(15000, 32000), 17000):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise KafkaStartError("no free port")


def live_brokers(port: int, timeout: float = 1.0) -> int:
    """How many brokers the one at `port` sees alive: a Metadata v1 request, spelled out."""
    body = struct.pack(">hhihi", 3, 1, 1, -1, 0)  # key, version, correlation, no client, no topics
    try:
        with socket.create_connection((HOST, port), timeout) as conn:
            conn.sendall(struct.pack(">i", len(body)) + body)
            reply = conn.recv(12, socket.MSG_WAITALL)  # size, correlation, length of broker list
    except OSError:
        return 0
    return int(struct.unpack(">i", reply[8:])[0]) if len(reply) == 12 else 0


@dataclass
class Broker:
    """One broker process; it keeps its ports and its data across `kill` and `start`."""

    node_id: int
    folder: Path
    ports: Mapping[str, int]
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def port(self) -> int:
        return next(iter(self.ports.values()))

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "kafka.Kafka", "server.properties"],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C in the terminal goes to the tests only
            )

    def wait_ready(self, brokers: int, deadline: float) -> None:
        while live_brokers(self.port) < brokers:
            if self.process is None or self.process.poll() is not None:
                raise KafkaStartError(f"broker {self.node_id} exited\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise KafkaStartError(f"broker {self.node_id} not ready\n{self.log_tail()}")
            time.sleep(0.02)

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def pause(self) -> None:
        """Stop the process where it stands, as a long GC pause or a hung disk would."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: no controlled shutdown, no flush."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def terminate(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)  # a paused process could not react
            self.process.terminate()

    def stop(self, grace: float = 10.0) -> None:
        """SIGTERM, then SIGKILL after `grace` seconds."""
        if self.process is None:
            return
        self.terminate()
        try:
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()


class KafkaCluster:
    """`brokers` Kafka brokers under `folder`; each is a voter of the KRaft quorum too.

    `listeners` maps each client listener's name to its security protocol; the first one also
    carries the traffic between brokers. `properties` adds to or replaces the broker's settings.
    """

    def __init__(
        self,
        jars: Path,
        folder: Path,
        brokers: int = 1,
        *,
        listeners: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        scram: Mapping[str, str] | None = None,
        heap: str = "256m",
        java: str = "java",
        jvm_flags: Sequence[str] = JVM_FLAGS,
    ) -> None:
        self.listeners = dict(listeners or {"PLAINTEXT": "PLAINTEXT"})
        self.properties = dict(properties or {})
        self.scram = dict(scram or {})
        command = [java, f"-Xmx{heap}", *jvm_flags, *QUIET_LOG, "-cp", f"{jars.resolve()}/*"]
        names = [*self.listeners, CONTROLLER]
        ports = iter(free_ports(brokers * len(names)))
        self.brokers = [
            Broker(n, folder / f"broker-{n}", {name: next(ports) for name in names}, command)
            for n in range(1, brokers + 1)
        ]

    def bootstrap(self, listener: str | None = None) -> str:
        """The `bootstrap_servers` for one listener, by default the first."""
        name = listener or next(iter(self.listeners))
        return ",".join(f"{HOST}:{broker.ports[name]}" for broker in self.brokers)

    def settings(self, broker: Broker) -> dict[str, str]:
        first = next(iter(self.listeners))
        count = len(self.brokers)
        copies, quorate = str(min(3, count)), str(min(2, count))
        protocols = {**self.listeners, CONTROLLER: "PLAINTEXT"}
        return {
            "process.roles": "broker,controller",
            "node.id": str(broker.node_id),
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in broker.ports.items()),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
            "inter.broker.listener.name": first,
            "controller.listener.names": CONTROLLER,
            "controller.quorum.voters": ",".join(
                f"{each.node_id}@{HOST}:{each.ports[CONTROLLER]}" for each in self.brokers
            ),
            "log.dirs": "data",
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "min.insync.replicas": quorate,
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": quorate,
            "group.initial.rebalance.delay.ms": "0",  # 3 s by default
            "group.min.session.timeout.ms": "1000",  # 6 s: lets a test lose a member sooner
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "3000",  # 9 s by default: how long a dead leader is kept
            "log.cleaner.dedupe.buffer.size": "8388608",  # 128 MiB of heap by default
            "num.io.threads": "4",
            **self.properties,
        }

    def format(self) -> None:
        """Write each broker's settings and its empty, formatted data folder."""
        jobs: list[tuple[Broker, subprocess.Popen[str]]] = []
        for broker in self.brokers:
            broker.folder.mkdir(parents=True, exist_ok=True)
            text = "".join(f"{key}={value}\n" for key, value in self.settings(broker).items())
            (broker.folder / "server.properties").write_text(text)
            arguments = ["format", "-t", CLUSTER_ID, "-c", "server.properties"]
            for name, password in self.scram.items():
                arguments += ["-S", f"SCRAM-SHA-512=[name={name},password={password}]"]
            job = subprocess.Popen(
                [*broker.command, "kafka.tools.StorageTool", *arguments],
                cwd=broker.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            jobs.append((broker, job))
        for broker, job in jobs:
            output, _ = job.communicate()
            if job.returncode != 0:
                raise KafkaStartError(f"format of broker {broker.node_id} failed\n{output}")

    def start(self, timeout: float = 180.0) -> None:
        for broker in self.brokers:
            broker.start()
        self.wait_ready(timeout)

    def wait_ready(self, timeout: float = 180.0) -> None:
        """Return when every broker answers and sees all the others alive."""
        deadline = time.monotonic() + timeout
        for broker in self.brokers:
            broker.wait_ready(len(self.brokers), deadline)

    def stop(self, grace: float = 3.0) -> None:
        """SIGTERM to all, then SIGKILL to those still there after `grace` seconds.

        The last of several brokers waits 5 s for a quorum that is gone; nobody needs its data.
        """
        deadline = time.monotonic() + grace
        for broker in self.brokers:
            broker.terminate()
        for broker in self.brokers:
            broker.stop(max(0.0, deadline - time.monotonic()))

    def __enter__(self) -> KafkaCluster:
        self.format()
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
