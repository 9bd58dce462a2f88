"""What a case speaks through: it sends requests to one server and keeps every answer for the transcript."""

from __future__ import annotations

import hashlib
import http.client
import json
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.contract.cases.made import Made
from tests.contract.cases.normal import Names, normal_transcript

_SECONDS = 300.0
_HEADERS = ("retry-after", "x-infrahub-admission")


class CaseBrokenError(Exception):
    """The case cannot go on: a write that it needs did not answer with an object."""


@dataclass(frozen=True)
class Place:
    """One server and the branch that the cases write to. ``run`` tells runs apart.

    ``token`` is an administrator's, ``reader_token`` that of an account without a role, ``old_token`` was one of its.
    ``made`` is what has to go when the run is over.
    """

    url: str
    token: str
    reader_token: str
    old_token: str
    branch: str
    run: str
    made: Made = field(default_factory=Made)


@dataclass(frozen=True)
class Reply:
    """One answer. ``document`` is None where the body is no JSON."""

    status: int
    document: Any
    text: str

    @property
    def id(self) -> str:
        """The id of the one object that a mutation answered with."""
        try:
            (payload,) = self.document["data"].values()
            return str(payload["object"]["id"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise CaseBrokenError("no object in the answer") from None

    @property
    def node(self) -> dict[str, Any]:
        """The first object of a list query."""
        try:
            (page,) = self.document["data"].values()
            node: dict[str, Any] = page["edges"][0]["node"]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise CaseBrokenError("no object in the list") from None
        return node

    @property
    def ok(self) -> bool:
        """Whether it is an answer of a mutation that says so."""
        try:
            (payload,) = self.document["data"].values()
            return payload["ok"] is True and "errors" not in self.document
        except (KeyError, TypeError, ValueError, AttributeError):
            return False


@dataclass
class Talk:
    """The conversation of one case at one place; ``steps`` is what was said, in order."""

    place: Place
    case: str
    steps: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.case.encode()).hexdigest()[:6]
        self._prefix = f"{self.place.run}{digest}-"
        self._names = Names(self._prefix)
        self._http = self._client()

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self.place.url, trust_env=False, timeout=_SECONDS)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def reconnect(self) -> None:
        """Go on over a new connection."""
        self._http.close()
        self._http = self._client()

    def transcript(self) -> list[dict[str, Any]]:
        """What was said, without anything that differs from run to run."""
        return normal_transcript(self.steps, self._names)

    # ---------------------------------------------------------------- names and values

    def name(self, label: str = "a") -> str:
        """A name that no other case and no other run uses; ``~label`` in the transcript."""
        return f"{self._prefix}{label}"

    def new_id(self, label: str = "own") -> str:
        """An id that was never used."""
        return self.known(str(uuid.uuid4()), label)

    def known(self, text: str, label: str) -> str:
        """Show ``text`` as ``<label>`` in the transcript."""
        self._names.show(text, label)
        return text

    # ---------------------------------------------------------------- requests

    def write(
        self, mutation: str, data: Any, *, below: str = "ok object { id }", branch: str | None = None, call: str = ""
    ) -> Reply:
        """One mutation with its input as a variable."""
        below = "ok" if mutation.endswith("Delete") else below
        kind = "DeleteInput" if mutation.endswith("Delete") else f"{mutation}Input"
        text = f"mutation Apply($data: {kind}!) {{ {mutation}(data: $data) {{ {below} }} }}"
        return self.post(text, {"data": data}, branch=branch, call=call or mutation)

    def read(self, kind: str, node_id: str, below: str, *, branch: str | None = None) -> Reply:
        """One object by its id."""
        return self.find(kind, {"ids": [node_id]}, below, branch=branch)

    def find(self, kind: str, filters: Mapping[str, Any], below: str, *, branch: str | None = None) -> Reply:
        """A list query whose filters are variables."""
        types = {name: "[ID]" if name.endswith("ids") else "String" for name in filters}
        types |= {name: "[String]" for name in filters if name == "hfid" or name.endswith("__values")}
        types |= {name: "Boolean" for name in filters if name.endswith("__isnull")}
        declared = ", ".join(f"${name}: {kind_of}" for name, kind_of in types.items())
        given = ", ".join(f"{name}: ${name}" for name in types)
        text = f"query Read({declared}) {{ {kind}({given}) {{ count edges {{ node {{ {below} }} }} }} }}"
        return self.post(text, dict(filters), branch=branch, call=f"{kind} by {', '.join(filters)}")

    def post(
        self,
        text: str,
        variables: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        call: str = "document",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One GraphQL request of any text."""
        path = f"/graphql/{branch or self.place.branch}"
        return self.send("POST", path, {"query": text, "variables": variables or {}}, call=call, headers=headers)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        call: str,
        headers: Mapping[str, str] | None = None,
        shown: bool = True,
    ) -> Reply:
        """One HTTP request; its answer becomes a step."""
        reply, step = self._exchange(method, path, body, headers)
        if shown:
            self.steps.append({"call": call, **step})
        return reply

    def at_once(self, mutation: str, inputs: Iterable[Any]) -> list[Reply]:
        """The same mutation several times in parallel, each over a connection of its own; answers are sorted."""
        text = f"mutation Apply($data: {mutation}Input!) {{ {mutation}(data: $data) {{ ok object {{ id }} }} }}"
        path = f"/graphql/{self.place.branch}"
        bodies = [{"query": text, "variables": {"data": data}} for data in inputs]
        with ThreadPoolExecutor(len(bodies)) as pool:
            answers = list(pool.map(lambda body: self._exchange("POST", path, body, None, apart=True), bodies))
        said = sorted((step for _, step in answers), key=lambda step: json.dumps(step, sort_keys=True))
        self.steps.append({"call": f"{mutation}, {len(bodies)} at once", "answers": said})
        return [reply for reply, _ in answers]

    def over_one_connection(
        self, label: str, texts: Iterable[str], *, branch: str | None = None, key: str | None = None
    ) -> None:
        """Documents one behind the other over a connection that is not opened again; what each was answered.

        A step for each: its HTTP status and what the answer says about the connection, or that none came.
        """
        address = urlsplit(self.place.url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        connection = kind(address.netloc, timeout=_SECONDS)
        connection.connect()
        connection.auto_open = 0
        headers = {"content-type": "application/json", "X-INFRAHUB-KEY": key or self.place.token}
        said: list[Any] = []
        with closing(connection):
            for text in texts:
                body = json.dumps({"query": text})
                try:
                    connection.request("POST", f"/graphql/{branch or self.place.branch}", body, headers)
                    answer = connection.getresponse()
                    answer.read()
                except (OSError, http.client.HTTPException):
                    said.append("no answer")
                else:
                    said.append({"status": answer.status, "connection": answer.getheader("connection")})
        self.note(f"behind {label}", said)

    def note(self, label: str, value: Any) -> None:
        """Put something that the case worked out into the transcript."""
        self.steps.append({"call": label, "found": value})

    def new_branch(self, label: str) -> str:
        """Fork the default branch."""
        name = f"{self._prefix}{label}"
        text = "mutation B($data: BranchCreateInput!) { BranchCreate(data: $data) { ok object { name } } }"
        self.post(text, {"data": {"name": name, "sync_with_git": False}}, branch="main", call="BranchCreate")
        return name

    def _exchange(
        self, method: str, path: str, body: Any, headers: Mapping[str, str] | None, *, apart: bool = False
    ) -> tuple[Reply, dict[str, Any]]:
        sent = {"content-type": "application/json", "X-INFRAHUB-KEY": self.place.token} if headers is None else headers
        # Escaped to ASCII: half of a surrogate pair can be sent no other way.
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        client = self._client() if apart else self._http
        try:
            response = client.request(method, path, content=content, headers=dict(sent))
        finally:
            if apart:
                client.close()
        if response.status_code >= 500 and not apart:
            # The server closes the connection behind such an answer without having said so.
            self.reconnect()
        reply, step = _read(response)
        self.place.made.saw(path, body, reply.document)
        return reply, step


def _read(response: httpx.Response) -> tuple[Reply, dict[str, Any]]:
    step: dict[str, Any] = {"status": response.status_code}
    step |= {name: response.headers[name] for name in _HEADERS if name in response.headers}
    try:
        document = response.json()
    except ValueError:
        return Reply(response.status_code, None, response.text), {**step, "text": response.text}
    return Reply(response.status_code, document, response.text), {**step, "answer": document}


def hold(case_name: str, conversation: Any, place: Place) -> list[dict[str, Any]]:
    """Hold one conversation and return its transcript; a case that breaks off says so in there."""
    talk = Talk(place, case_name)
    try:
        conversation(talk)
    except CaseBrokenError as broken:
        talk.note("the case broke off", str(broken))
    finally:
        talk.close()
    return talk.transcript()


def values(**fields: Any) -> dict[str, Any]:
    """Attribute values as a mutation takes them."""
    return {name: {"value": value} for name, value in fields.items()}


def peer(node_id: str) -> dict[str, Any]:
    """One peer as a mutation takes it."""
    return {"id": node_id}


def peers(*node_ids: str) -> list[dict[str, Any]]:
    """Several peers as a mutation takes them."""
    return [{"id": node_id} for node_id in node_ids]
