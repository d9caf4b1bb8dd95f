"""Does the portal do its job: a server for a user, as a job; a kernel that computes; the job's end.

``portal_check.py USER SECONDS`` as root on the portal's host, as ``deploy validate`` runs it. It goes the way
of a browser, through the proxy, with a token that is for this alone. The answer is one line of JSON, in
which ``why`` is empty where all of it worked.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from portal_choices import accounts_of
from portal_spawner import HelperError, ask, offers_of
from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse
from tornado.websocket import websocket_connect

_DIRECTORY = Path("/etc/slurm-portal")
_NO_CONTENT, _ACCEPTED, _NOT_FOUND = 204, 202, 404
_SUM = "2\n"


class FailedError(Exception):
    """What did not work."""


class Portal:
    """The portal as one user's program meets it."""

    def __init__(self, user: str, until: float) -> None:
        self._user, self._until = user, until
        settings = json.loads((_DIRECTORY / "settings.json").read_text(encoding="utf-8"))
        self._settings = settings
        lines = (_DIRECTORY / "token").read_text(encoding="utf-8").splitlines()
        words = dict(line.split("=", 1) for line in lines)
        self._headers = {"Authorization": f"token {words['PORTAL_CHECK_TOKEN']}"}
        self._url = f"{settings['hub_name']}:{settings['url'].rpartition(':')[2]}"
        # The certificate itself is what is trusted, whatever name people type and whose authority it is.
        self._context = ssl.create_default_context(cafile=str(_DIRECTORY / "tls.crt"))
        self._context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self._context.check_hostname = False

    async def check(self) -> dict[str, Any]:
        """Everything once; what was started is ended."""
        began = time.monotonic()
        await self._must("POST", f"/hub/api/users/{self._user}", expect={201, 409}, body={})
        if (await self._server()).get("ready"):
            raise FailedError(f"{self._user} has a server already")
        form = await self._form()
        await self._must("POST", f"/hub/api/users/{self._user}/server", expect={201, 202}, body=form)
        try:
            while not (found := await self._server()).get("ready"):
                if not found:
                    raise FailedError(f"its job did not become a server: {await self._last()}")
                await self._pause(f"its server is not there in time: {await self._last()}")
            ready = time.monotonic() - began
            said = await self._compute()
        finally:
            await self._ask("DELETE", f"/hub/api/users/{self._user}/server")
        while await self._server():
            await self._pause("its server is not gone in time")
        if said != _SUM:
            raise FailedError(f"1+1 printed {said!r} in its kernel")
        return {"why": "", "seconds": round(ready, 1), "partition": form["partition"]}

    async def _form(self) -> dict[str, str]:
        may = offers_of(await ask(self._settings["socket"], {"do": "offers", "user": self._user}))
        for partition in may.partitions.values():
            return {
                "partition": partition.name,
                "account": accounts_of(partition, may.accounts)[0],
                "qos": "",
                "gpus": "0",
                "gpu_type": "",
                "cpus": "1",
                "memory_gb": "1",
                "minutes": "5",
                "environment": "plain",
            }
        raise FailedError(f"no partition of the portal takes jobs of {self._user}")

    async def _compute(self) -> str:
        base = f"/user/{self._user}/api/kernels"
        kernel = json.loads((await self._must("POST", base, expect={201}, body={"name": "python3"})).body)
        request = HTTPRequest(
            f"wss://{self._url}{base}/{kernel['id']}/channels",
            headers=self._headers,
            ssl_options=self._context,
        )
        line = await asyncio.wait_for(websocket_connect(request), self._left())
        message = uuid.uuid4().hex
        content = {"code": "print(1 + 1)", "silent": False, "store_history": False, "allow_stdin": False}
        header = {"msg_id": message, "username": self._user, "session": message, "version": "5.3"}
        more = {"parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        await line.write_message(
            json.dumps({"header": {**header, "msg_type": "execute_request", "date": ""}, **more})
        )
        printed = ""
        while True:
            text = await asyncio.wait_for(line.read_message(), self._left())
            if text is None:
                raise FailedError("its kernel hung up")
            told = json.loads(text)
            if told.get("parent_header", {}).get("msg_id") != message:
                continue
            if told["msg_type"] == "stream":
                printed += told["content"]["text"]
            if told["msg_type"] == "status" and told["content"]["execution_state"] == "idle":
                line.close()
                return printed

    async def _server(self) -> dict[str, Any]:
        said = await self._must("GET", f"/hub/api/users/{self._user}", expect={200})
        found: dict[str, Any] = json.loads(said.body).get("servers", {}).get("", {})
        return found

    async def _last(self) -> str:
        answer = await ask(self._settings["socket"], {"do": "jobs", "user": self._user})
        jobs = [*answer["jobs"], *answer["ended"]]
        return str(jobs[0]["words"]) if jobs else "Slurm has no job of it"

    async def _must(self, method: str, path: str, *, expect: set[int], body: object = None) -> HTTPResponse:
        said = await self._ask(method, path, body)
        if said.code not in expect:
            raise FailedError(f"{method} {path} is answered with {said.code} {said.reason}")
        return said

    async def _ask(self, method: str, path: str, body: object = None) -> HTTPResponse:
        return await AsyncHTTPClient().fetch(
            f"https://{self._url}{path}",
            method=method,
            headers=self._headers,
            body=None if body is None else json.dumps(body),
            ssl_options=self._context,
            raise_error=False,
            request_timeout=max(self._left(), 10),
        )

    def _left(self) -> float:
        return max(self._until - time.monotonic(), 0)

    async def _pause(self, late: str) -> None:
        if not self._left():
            raise FailedError(late)
        await asyncio.sleep(1)


def main(user: str, seconds: str) -> dict[str, Any]:
    """What came of it."""
    try:
        return asyncio.run(Portal(user, time.monotonic() + float(seconds)).check())
    except (FailedError, HelperError, OSError, asyncio.TimeoutError, ValueError, KeyError) as problem:  # noqa: UP041
        return {"why": f"{problem or type(problem).__name__}"[:300]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:3])) + "\n")
