"""Pages and answers of the hub that JupyterHub has not: a server says its port, and people see their jobs."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.handlers.base import BaseHandler
from portal_gpus import add_gpu_use
from portal_spawner import HelperError, SlurmSpawner, ask
from tornado import web

_JOB = re.compile(r"[0-9]{1,10}(_[0-9]{1,10})?")
_PORTS = range(1024, 65536)


class PortHandler(APIHandler):
    """Where a server that has just begun says its port; on which node it is, Slurm says."""

    def post(self) -> None:
        """Take the port of the server whose token it is."""
        user = self.current_user
        if user is None:
            raise web.HTTPError(403)
        # A token of another kind is of no server that waits.
        token = self.get_auth_token()
        spawner = next(
            (one for one in user.spawners.values() if one.api_token and one.api_token == token), None
        )
        try:
            port = json.loads(self.request.body)["port"]
        except (ValueError, KeyError, TypeError):
            raise web.HTTPError(400) from None
        if not isinstance(spawner, SlurmSpawner) or not spawner.pending:
            raise web.HTTPError(409, "No server of this token is expected.")
        if isinstance(port, bool) or not isinstance(port, int) or port not in _PORTS:
            raise web.HTTPError(400)
        spawner.port = port
        self.set_status(204)


class JobsHandler(BaseHandler):
    """The jobs of whoever looks, and the cluster as they see it."""

    @web.authenticated
    async def get(self) -> None:
        """The page."""
        new, old = self.get_query_argument("new", ""), self.get_query_argument("of", "")
        is_told = _JOB.fullmatch(new) and _JOB.fullmatch(old)
        words = f"Job {new} has the script of job {old}." if is_told else ""
        if not old and _JOB.fullmatch(new):
            words = f"Job {new} is submitted."
        await self._show(done=words)

    @web.authenticated
    async def post(self) -> None:
        """End one of them, or submit its script again; Slurm refuses those of others."""
        said = {name: self.get_body_argument(name, "") for name in ("job", "name", "partition")}
        job, do = said["job"], self.get_body_argument("do", "cancel")
        if do not in {"cancel", "again", "template"}:
            raise web.HTTPError(400)
        try:
            answer = await self._ask(do, **said)
        except HelperError as problem:
            await self._show(trouble=str(problem))
        else:
            # Another page: what is loaded again is not done again.
            new = f"?new={answer['job']}&of={job if do == 'again' else ''}" if "job" in answer else ""
            self.redirect(f"{self.hub.base_url}jobs{new}")

    async def _ask(self, do: str, **more: object) -> dict[str, Any]:
        return await ask(self.settings["portal_helper"], {"do": do, "user": self.current_user.name, **more})

    async def _show(self, trouble: str = "", done: str = "") -> None:
        jobs, cluster = await asyncio.gather(self._ask("jobs"), self._ask("cluster"), return_exceptions=True)
        for answer in (jobs, cluster):
            if isinstance(answer, HelperError):
                trouble = trouble or str(answer)
            elif isinstance(answer, BaseException):
                raise answer
        if trouble:
            self.set_status(502)
        if isinstance(jobs, dict):
            await add_gpu_use(self.settings["portal_prometheus"], jobs["jobs"])
        self.finish(
            await self.render_template(
                "jobs.html",
                user=self.current_user,
                jobs=jobs if isinstance(jobs, dict) else {},
                cluster=cluster if isinstance(cluster, dict) else {},
                trouble=trouble,
                done=done,
                xsrf=self.xsrf_token,
            )
        )


class ServerHandler(BaseHandler):
    """What is known of the server of whoever asks, for the page that says that it does not answer."""

    @web.authenticated
    async def get(self) -> None:
        """A sentence."""
        user = self.current_user
        if user.running:
            await user.spawner.poll_and_notify()
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"words": getattr(user, "portal_words", "")}))


HANDLERS = [
    (r"/api/portal/port", PortHandler),
    (r"/jobs", JobsHandler),
    (r"/portal/server", ServerHandler),
]
