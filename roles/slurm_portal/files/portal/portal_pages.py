"""Pages and answers of the hub that JupyterHub has not: a server says its port, and people see their jobs."""

from __future__ import annotations

import json

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.handlers.base import BaseHandler
from portal_spawner import HelperError, SlurmSpawner, ask
from tornado import web

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
    """The jobs of whoever looks."""

    @web.authenticated
    async def get(self) -> None:
        """The page."""
        await self._show("")

    @web.authenticated
    async def post(self) -> None:
        """End one of them; Slurm refuses those of others."""
        job = self.get_body_argument("job", "")
        try:
            await ask(self.settings["portal_helper"], {"do": "cancel", "user": self._name(), "job": job})
        except HelperError as problem:
            await self._show(str(problem))
        else:
            self.redirect(self.hub.base_url + "jobs")

    def _name(self) -> str:
        name: str = self.current_user.name
        return name

    async def _show(self, trouble: str) -> None:
        jobs, ended = [], []
        try:
            answer = await ask(self.settings["portal_helper"], {"do": "jobs", "user": self._name()})
            jobs, ended = answer["jobs"], answer["ended"]
        except HelperError as problem:
            trouble = trouble or str(problem)
        if trouble:
            self.set_status(502)
        self.finish(
            await self.render_template(
                "jobs.html",
                user=self.current_user,
                jobs=jobs,
                ended=ended,
                trouble=trouble,
                xsrf=self.xsrf_token,
            )
        )


HANDLERS = [(r"/api/portal/port", PortHandler), (r"/jobs", JobsHandler)]
