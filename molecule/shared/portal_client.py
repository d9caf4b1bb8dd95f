"""A browser's part in tests of the portal: logs in, asks for a server, runs cells, ends it.

Runs on a machine of the cluster with the Python of the role jupyter_server, which has what it imports.
``portal_client.py URL AUTHORITY NAME PASSWORD VERB [ARGUMENT …]`` prints JSON.
"""

import json
import ssl
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import requests
import websocket

FORM = {"partition": "batch", "account": "research", "qos": "", "gpus": "0", "gpu_type": "", "cpus": "1"}
FORM |= {"memory_gb": "1", "minutes": "10", "environment": "plain"}
_SECONDS = 240


class Browser:
    """One person's cookies."""

    def __init__(self, url: str, authority: str) -> None:
        self.url, self.authority = url.rstrip("/"), authority
        self.session = requests.Session()
        self.session.verify = authority

    def ask(self, method: str, path: str, **more: Any) -> requests.Response:  # noqa: ANN401 - of requests
        """With the token against forged requests, as the pages send it."""
        headers = more.pop("headers", {})
        if method != "GET":
            headers = {"X-XSRFToken": self.xsrf(path), **headers}
        return self.session.request(method, self.url + path, headers=headers, timeout=60, **more)

    def xsrf(self, path: str) -> str:
        """The cookie whose path fits best."""
        found = [one for one in self.session.cookies if one.name == "_xsrf" and path.startswith(one.path)]
        return max(found, key=lambda one: len(one.path)).value or "" if found else ""

    def log_in(self, name: str, password: str) -> int:
        """The status; cookies are kept."""
        self.session.get(f"{self.url}/hub/login", timeout=60)
        data = {"username": name, "password": password, "_xsrf": self.xsrf("/hub/login")}
        done = self.session.post(f"{self.url}/hub/login", data=data, allow_redirects=False, timeout=120)
        return done.status_code

    def spawn(self, name: str, **form: str) -> requests.Response:
        """Posts the form."""
        self.ask("GET", f"/hub/spawn/{name}")
        data = {**FORM, **form, "_xsrf": self.xsrf("/hub/spawn")}
        return self.session.post(f"{self.url}/hub/spawn/{name}", data=data, timeout=120)

    def server(self, name: str) -> dict[str, Any]:
        """What the hub says of the server; empty without one."""
        done = self.ask("GET", f"/hub/api/users/{name}")
        servers: dict[str, dict[str, Any]] = done.json().get("servers", {}) if done.ok else {}
        return servers.get("", {})

    def wait(self, name: str, *, ready: bool = True) -> dict[str, Any]:
        """Until the server is ready, or there is none."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            found = self.server(name)
            if bool(found.get("ready")) == ready and (ready or not found):
                return found
            time.sleep(0.5)
        sys.exit(f"{name}'s server is not {'ready' if ready else 'gone'}: {found}")

    def progress(self, name: str) -> list[str]:
        """What the waiting page said so far: lines that come within some seconds."""
        told: list[str] = []
        with self.session.get(
            f"{self.url}/hub/api/users/{name}/server/progress",
            stream=True,
            timeout=8,
            headers={"X-XSRFToken": self.xsrf("/hub/api")},
        ) as stream:
            try:
                for line in stream.iter_lines():
                    if line.startswith(b"data:"):
                        told.append(json.loads(line[5:]).get("message", ""))
                        if len(told) > 1:
                            break
            except requests.RequestException:
                pass
        return told

    def run(self, name: str, code: str) -> str:
        """What a cell prints in a new kernel."""
        base = f"/user/{name}"
        self.ask("GET", f"{base}/lab")
        kernel = self.ask("POST", f"{base}/api/kernels", json={"name": "python3"})
        kernel.raise_for_status()
        number = kernel.json()["id"]
        cookies = "; ".join(f"{one.name}={one.value}" for one in self.session.cookies if "/user" in one.path)
        line = websocket.create_connection(
            f"{self.url.replace('https', 'wss')}{base}/api/kernels/{number}/channels?session_id=1",
            header=[f"Cookie: {cookies}", f"X-XSRFToken: {self.xsrf(base + '/')}"],
            sslopt={"ca_certs": self.authority, "cert_reqs": ssl.CERT_REQUIRED},
            timeout=60,
        )
        message = uuid.uuid4().hex
        header = {
            "msg_id": message,
            "username": name,
            "session": uuid.uuid4().hex,
            "msg_type": "execute_request",
        }
        content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
        line.send(
            json.dumps(
                {
                    "header": {**header, "version": "5.3", "date": "2026-01-01T00:00:00Z"},
                    "parent_header": {},
                    "metadata": {},
                    "content": content,
                    "channel": "shell",
                }
            )
        )
        printed = ""
        while True:
            told = json.loads(line.recv())
            if told.get("parent_header", {}).get("msg_id") != message:
                continue
            if told["msg_type"] == "stream":
                printed += told["content"]["text"]
            if told["msg_type"] == "error":
                printed += told["content"]["evalue"]
            if told["msg_type"] == "status" and told["content"]["execution_state"] == "idle":
                line.close()
                return printed

    def stop(self, name: str) -> int:
        """Ends the server."""
        return self.ask("DELETE", f"/hub/api/users/{name}/server").status_code


def said(done: requests.Response) -> dict[str, Any]:
    """An answer, for JSON."""
    return {"status": done.status_code, "said": done.text, "url": done.url}


def start(browser: Browser, name: str, form: str = "{}") -> Any:  # noqa: ANN401 - JSON
    """Asks for a server and waits for it."""
    done = browser.spawn(name, **json.loads(form))
    return {"status": done.status_code, "server": browser.wait(name)}


def post(browser: Browser, name: str, form: str) -> Any:  # noqa: ANN401 - JSON
    """Posts a form."""
    return {**said(browser.spawn(name, **json.loads(form))), "server": browser.server(name)}


def many(browser: Browser, _: str, asked: str) -> Any:  # noqa: ANN401 - JSON
    """The statuses of several answers."""
    return [browser.ask(method, path, **more).status_code for method, path, more in json.loads(asked)]


def cancel(browser: Browser, _: str, job: str) -> Any:  # noqa: ANN401 - JSON
    """Cancels a job on the page of jobs."""
    browser.ask("GET", "/hub/jobs")
    data = {"job": job, "_xsrf": browser.xsrf("/hub/jobs")}
    return said(browser.session.post(f"{browser.url}/hub/jobs", data=data, timeout=60))


def again(browser: Browser, _: str, job: str) -> Any:  # noqa: ANN401 - JSON
    """Submits a job's script once more on the page of jobs."""
    browser.ask("GET", "/hub/jobs")
    data = {"do": "again", "job": job, "_xsrf": browser.xsrf("/hub/jobs")}
    return said(browser.session.post(f"{browser.url}/hub/jobs", data=data, timeout=60))


def template(browser: Browser, _: str, name: str, partition: str) -> Any:  # noqa: ANN401 - JSON
    """Submits a script of the site's on the page of jobs."""
    browser.ask("GET", "/hub/jobs")
    data = {"do": "template", "name": name, "partition": partition, "_xsrf": browser.xsrf("/hub/jobs")}
    return said(browser.session.post(f"{browser.url}/hub/jobs", data=data, timeout=60))


VERBS: dict[str, Callable[..., Any]] = {
    "start": start,
    "post": post,
    "many": many,
    "cancel": cancel,
    "again": again,
    "template": template,
    "server": lambda browser, name: browser.server(name),
    "progress": lambda browser, name: browser.progress(name),
    "run": lambda browser, name, code: browser.run(name, code),
    "get": lambda browser, _, path: said(browser.ask("GET", path)),
    "ask": lambda browser, _, method, path, more="{}": said(browser.ask(method, path, **json.loads(more))),
    "stop": lambda browser, name: {"status": browser.stop(name), "server": browser.wait(name, ready=False)},
}


def main(url: str, authority: str, name: str, password: str, verb: str, *more: str) -> None:
    """Logs in and does one thing."""
    browser = Browser(url, authority)
    status = browser.log_in(name, password)
    answer = {"login": status} if verb == "login" else VERBS[verb](browser, name, *more)
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
