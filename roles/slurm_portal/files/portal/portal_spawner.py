"""JupyterHub's parts that are the cluster's: who logs in, and servers that are jobs of Slurm."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

from jupyterhub.auth import Authenticator
from jupyterhub.spawner import Spawner
from portal_choices import FIELDS, NOTHING, NotAllowedError, Offers, Partition, chosen
from portal_form import form_page
from portal_jobs import ACTIVE, WAITING
from tornado import web
from traitlets import Any as AnyTrait
from traitlets import Dict, Integer, Unicode

ADMINS = "admins"
"""The hub's group of those who see all servers and may end them."""
_PEM = {"keyfile": "PORTAL_KEY", "certfile": "PORTAL_CERTIFICATE", "cafile": "PORTAL_AUTHORITY"}
_SECONDS_TO_ASK = 90
_PEOPLE_OF_AN_ADDRESS = 10
_SECONDS_TO_END = 120
_SECONDS_TO_REPORT = 300
_SECONDS_TO_FETCH = 1800
_SECONDS_TO_CONNECT = 3
_MOVED = (
    "The portal has another port or name since this server was started, which asks in vain who comes: "
    "it lets nobody in any more. Stop it and start another one; its job runs until then."
)


class HelperError(Exception):
    """The helper did not do what was asked; ``refused`` where it may never."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.refused = refused
        self.jupyterhub_message = why


class ReadableError(web.HTTPError):
    """Its words are for the user; JupyterHub's pages show them without the status."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status, words)
        self.jupyterhub_message = words


async def ask(socket: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The helper's answer; raises HelperError."""
    try:
        answer = await asyncio.wait_for(_exchange(socket, request), _SECONDS_TO_ASK)
    except (OSError, asyncio.TimeoutError, ValueError) as problem:  # noqa: UP041 - differ in Python 3.10
        raise HelperError(
            f"The portal cannot ask Slurm now ({type(problem).__name__}); try again soon."
        ) from problem
    if not answer.get("ok"):
        raise HelperError(str(answer.get("why", "")), refused=bool(answer.get("refused")))
    return answer


async def _exchange(socket: str, request: Mapping[str, Any]) -> dict[str, Any]:
    reader, writer = await asyncio.open_unix_connection(socket, limit=1 << 24)
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        answer: dict[str, Any] = json.loads(await reader.readline())
    finally:
        writer.close()
    return answer


def offers_of(answer: Mapping[str, Any]) -> Offers:
    """The helper's answer as what portal_choices compares with."""
    partitions = [
        Partition(
            each["name"],
            each["minutes"],
            each["gpus"],
            None if each["accounts"] is None else frozenset(each["accounts"]),
            frozenset(each["denied"]),
            None if each["qos"] is None else frozenset(each["qos"]),
        )
        for each in answer["partitions"]
    ]
    accounts = {name: tuple(qos) for name, qos in answer["accounts"].items()}
    return Offers({each.name: each for each in partitions}, accounts, tuple(answer["nodes"]))


class Attempts:
    """Logins that failed, of an account and from an address; too many close it for a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._failed: defaultdict[str, deque[float]] = defaultdict(deque)

    def is_closed(self, most: Mapping[str, int]) -> bool:
        """Whether one of them has failed as often as it may."""
        return any(len(self._recent(key)) >= number for key, number in most.items())

    def failed(self, keys: Iterable[str]) -> None:
        """One more failure of each."""
        for key in keys:
            self._recent(key)
            self._failed[key].append(time.monotonic())

    def succeeded(self, keys: Iterable[str]) -> None:
        """Takes back one failure of each, counted before it was known to be none."""
        for key in keys:
            if found := self._failed.get(key):
                found.pop()

    def _recent(self, key: str) -> deque[float]:
        since = time.monotonic() - self._seconds
        found = self._failed.get(key, deque())
        while found and found[0] < since:
            found.popleft()
        if not found:
            self._failed.pop(key, None)
        return found


class PortalAuthenticator(Authenticator):
    """The cluster's accounts, by PAM, which the helper asks."""

    helper = Unicode("/run/slurm-portal/helper.socket", config=True)
    attempts = Integer(10, config=True)
    minutes = Integer(10, config=True)
    _counted: Any = AnyTrait()

    async def authenticate(
        self, handler: web.RequestHandler, data: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Who it is, with whether an admin; None where not."""
        if self._counted is None:
            self._counted = Attempts(60 * self.minutes)
        name = data["username"]
        # Many people may come from one address.
        most = {
            f"account {name[:64]}": self.attempts,
            f"address {handler.request.remote_ip}": _PEOPLE_OF_AN_ADDRESS * self.attempts,
        }
        if self._counted.is_closed(most):
            raise web.HTTPError(
                429, f"Too many logins failed; the next may succeed in {self.minutes} minutes."
            )
        # Counted before it is known: attempts at the same time count, too.
        self._counted.failed(most)
        try:
            answer = await ask(self.helper, {"do": "login", "user": name, "password": data["password"]})
        except HelperError as problem:
            if not problem.refused:
                self._counted.succeeded(most)
                raise web.HTTPError(503, str(problem)) from problem
            self.log.warning("Login of %r from %s refused", name[:64], handler.request.remote_ip)
            return None
        self._counted.succeeded(most)
        # JupyterHub's own admins would open everybody's server.
        return {"name": name, "groups": [ADMINS] if answer["admin"] else []}


class SlurmSpawner(Spawner):
    """A server that is a job of its user.

    Batchspawner makes a script of what users say and runs commands that are shell text; here both are the
    helper's, which takes nothing but names that Slurm knows and numbers.
    """

    helper = Unicode("/run/slurm-portal/helper.socket", config=True)
    limits = Dict(config=True)
    job = Unicode("")
    port = Integer(0)
    hub_of_start = Unicode("")
    words = Unicode("")
    seen = Dict()
    pem = Dict()
    may: Any = AnyTrait()

    async def _ask(self, do: str, **more: object) -> dict[str, Any]:
        return await ask(self.helper, {"do": do, "user": self.user.name, **more})

    async def _offers(self) -> Offers:
        return offers_of(await self._ask("offers"))

    async def launcher(self) -> str:
        """The form, or why there is nothing to choose."""
        try:
            may = await self._offers()
        except HelperError as problem:
            return _nothing_to_start("danger", str(problem))
        if not may.partitions:
            return _nothing_to_start("warning", NOTHING)
        return form_page(may, self.limits, self.user_options)

    async def options_from_form(self, formdata: Mapping[str, list[str]]) -> dict[str, str]:
        """What was posted, compared with what this user may ask for."""
        form = {name: values[0] for name, values in formdata.items() if not name.startswith("_")}
        return await self._compared(form)

    async def _compared(self, form: Mapping[str, object]) -> dict[str, str]:
        try:
            choices = chosen(form, await self._offers(), self.limits)
        except NotAllowedError as problem:
            raise ReadableError(400, str(problem)) from problem
        except HelperError as problem:
            raise ReadableError(503, str(problem)) from problem
        return {name: str(getattr(choices, name)) for name in FIELDS}

    async def create_certs(self) -> dict[str, str]:
        """A certificate for the nodes where the server may be."""
        nodes = [f"DNS:{name}" for name in (await self._offers()).nodes]
        # The proxy compares with the name that the browser sent, which it hands on.
        self.ssl_alt_names = [*nodes, *self.limits["names"]]
        made: dict[str, str] = await super().create_certs()
        return made

    async def move_certs(self, paths: dict[str, str]) -> dict[str, str]:
        """The job takes them along."""
        self.pem = {name: base64.b64encode(_read(paths[key])).decode() for key, name in _PEM.items()}
        return paths

    def get_env(self) -> dict[str, str]:
        """The hub's variables for a server, and none of the hub's own."""
        found = super().get_env()
        kept = {name: value for name, value in found.items() if name.startswith(("JUPYTERHUB_", "JPY_"))}
        return {**kept, **self.pem}

    async def start(self) -> str:
        """Submits the job, waits until it runs, and for its server's port."""
        # The API takes options, too, which no form has compared.
        self.user_options = await self._compared(self.user_options)
        self.port, self.words, self.seen = 0, "", {}
        try:
            answer = await self._ask("submit", choices=self.user_options, environment=self.get_env())
        except HelperError as problem:
            raise ReadableError(400 if problem.refused else 503, str(problem)) from problem
        self.job, self.hub_of_start = answer["job"], self.hub.api_url
        # Were the hub to end now, it would know whose job that is.
        self.orm_spawner.state = self.get_state()
        self.db.commit()
        return await self._wait()

    async def _wait(self) -> str:
        running_since = 0.0
        is_image = ":" in self.user_options["environment"]
        longest = _SECONDS_TO_FETCH if is_image else _SECONDS_TO_REPORT
        while True:
            try:
                self.seen = (await self._ask("job", job=self.job))["job"]
            except HelperError as problem:
                self.words = str(problem)
            else:
                self.words = self.user.portal_words = self.seen["words"]
                if _is_over(self.seen):
                    # The hub's numbers tell trouble from what users end themselves.
                    raise ReadableError(409 if self.seen["state"] == "CANCELLED" else 502, self.words)
                node = self.seen["node"]
                if self.seen["state"] == "RUNNING" and node:
                    running_since = running_since or time.monotonic()
                    if self.port:
                        return f"https://{node}:{self.port}"
                    if is_image:
                        self.words += " Its image is fetched and unpacked before the server starts."
                    if time.monotonic() - running_since > longest:
                        raise ReadableError(
                            504, f"{self.words} Its server did not start: see ~/.slurm-portal.log."
                        )
            await asyncio.sleep(1 if running_since else 3)

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """What Slurm says while the job waits."""
        last = ""
        while True:
            if self.words and self.words != last:
                last = self.words
                yield {"progress": 60 if self.seen.get("state") == "RUNNING" else 20, "message": last}
            await asyncio.sleep(1)

    async def poll(self) -> int | None:
        """None while the job is there; what cannot be asked is taken for running."""
        if not self.job:
            return 0
        try:
            self.seen = (await self._ask("job", job=self.job))["job"]
        except HelperError as problem:
            self.log.warning("Job %s of %s: %s", self.job, self.user.name, problem)
            return None
        # The user's: JupyterHub forgets a server that has ended.
        self.words = self.user.portal_words = self.seen["words"]
        if not _is_over(self.seen):
            if self.hub_of_start != self.hub.api_url:
                # Its environment says where the hub is, and a job's cannot be changed.
                self.words = self.user.portal_words = f"{self.words} {_MOVED}"
            await self._notice_silence()
            return None
        self.log.info("%s", self.words)
        return 0 if self.seen["state"] == "COMPLETED" else 1

    async def _notice_silence(self) -> None:
        """Slurm takes minutes to give up a node; whether the server's port answers shows at once."""
        if self.seen["state"] != "RUNNING" or not self.server or not self.server.port:
            return
        try:
            opened = asyncio.open_connection(self.server.ip, self.server.port)
            _, writer = await asyncio.wait_for(opened, _SECONDS_TO_CONNECT)
        except (OSError, asyncio.TimeoutError):  # noqa: UP041 - differ in Python 3.10
            node = self.seen["node"] or "its node"
            self.words = self.user.portal_words = (
                f"{self.words} Its server on {node} does not answer: the node may have failed. "
                "Slurm says so when it gives the node up; until then you can wait, or stop the server "
                "and start another one."
            )
        else:
            writer.close()

    async def stop(self, now: bool = False) -> None:  # noqa: FBT001, FBT002 - as JupyterHub calls it
        """Ends the job, and comes back when it holds nothing any more."""
        if not self.job:
            return
        try:
            await self._ask("cancel", job=self.job)
        except HelperError as problem:
            self.log.warning("Job %s of %s: %s", self.job, self.user.name, problem)
        until = time.monotonic() + (0 if now else _SECONDS_TO_END)
        while time.monotonic() < until and await self.poll() is None:  # noqa: ASYNC110 - asks Slurm
            await asyncio.sleep(1)

    def get_state(self) -> dict[str, Any]:
        """What a hub that is started again has to know."""
        said = {"job": self.job, "hub": self.hub_of_start} if self.job else {}
        return {**super().get_state(), **said}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """As get_state said it."""
        super().load_state(state)
        self.job, self.hub_of_start = state.get("job", ""), state.get("hub", "")

    def clear_state(self) -> None:
        """Before a new server."""
        super().clear_state()
        self.job, self.port = "", 0


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


def _nothing_to_start(kind: str, why: str) -> str:
    """Instead of the form; the button below it would start nothing."""
    hidden = "<style>#spawn_form [type=submit] { display: none; }</style>"
    return f'<p class="alert alert-{kind}" role="alert">{html.escape(why)}</p>{hidden}'


async def launcher(spawner: SlurmSpawner) -> str:
    """As JupyterHub asks for the form."""
    return await spawner.launcher()


def _is_over(seen: Mapping[str, str]) -> bool:
    return bool(seen["state"]) and seen["state"] not in ACTIVE | WAITING
