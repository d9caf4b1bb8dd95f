"""Bob tries to come into the server of alice, and to have what he may not: no way leads there."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cluster.lab_cluster import Cluster, wait_until
from tests.cluster.portal_attacker import REDIRECTS, Answer, Attacker
from tests.cluster.portal_lab import HOST, PYTHON, ask, end_servers, jobs, port_of_server

pytestmark = [pytest.mark.one_release, pytest.mark.more, pytest.mark.shares_jobs]

_REFUSED = frozenset({400, 401, 403, 404, 405, 409, 421})
_FORM = {
    "partition": "batch",
    "account": "research",
    "qos": "",
    "gpus": "0",
    "gpu_type": "",
    "cpus": "1",
    "memory_gb": "1",
    "minutes": "10",
    "environment": "plain",
}


@dataclass(frozen=True)
class Scene:
    """Alice and bob each have a server; she has a secret in a file."""

    cluster: Cluster
    alice: Attacker
    bob: Attacker
    secret: str
    job: str
    node: str
    port: str
    bob_token: str


@pytest.fixture(scope="module")
def scene(portal: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    secret = f"s3cret{token_hex(16)}"
    portal.as_user(f"umask 077; echo {secret} >secret.txt")
    end_servers(portal)
    for name in ("alice", "bob"):
        ask(portal, name, "start", json.dumps({"gpus": "0", "minutes": "120"}))
    alice, bob = (Attacker(portal, tmp_path_factory.mktemp(name)) for name in ("alice", "bob"))
    alice.log_in("alice")
    bob.log_in("bob")
    alice.follow("GET", "/user/alice/lab")
    bob.follow("GET", "/user/bob/lab")
    made = bob.ask("POST", "/hub/api/users/bob/tokens", data={"note": "of the test"})
    job, node = jobs(portal, "alice", "%i %N").split()
    yield Scene(
        portal,
        alice,
        bob,
        secret,
        job,
        node,
        port_of_server(portal, node, "alice"),
        json.loads(made.text)["token"],
    )
    for name in ("alice", "bob"):
        ask(portal, name, "stop")


def test_alice_herself_comes_in_the_same_way(scene: Scene) -> None:
    """What is refused below is no mistake of the attacker's."""
    answer = scene.alice.follow("GET", "/user/alice/files/secret.txt")
    assert (answer.status, answer.text.strip()) == (200, scene.secret)
    assert scene.bob.follow("GET", "/user/bob/api/kernels").status == 200
    headers = {"Authorization": f"token {scene.bob_token}"}
    assert scene.bob.ask("GET", "/hub/api/users/bob", headers=headers).status == 200


@dataclass(frozen=True)
class Attempt:
    """A request that bob makes with his own cookies."""

    what: str
    path: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    data: Any = None
    hers: bool = False
    """Whether it leads somewhere when alice makes it, so that nothing but who he is keeps bob out."""


_FILE = "/user/alice/files/secret.txt"
_AS_BOB = [
    Attempt("her page", "/user/alice/lab", hers=True),
    Attempt("her file", _FILE, hers=True),
    Attempt("her directory", "/user/alice/api/contents/secret.txt", hers=True),
    Attempt("a kernel of hers", "/user/alice/api/kernels", "POST", data={"name": "python3"}, hers=True),
    Attempt("a terminal of hers", "/user/alice/api/terminals", "POST", data={}, hers=True),
    Attempt("her TensorBoard", "/user/alice/tensorboard/", hers=True),
    Attempt("a port of her node through her server", "/user/alice/proxy/22/"),
    Attempt("dots in the path", "/user/bob/../alice/files/secret.txt"),
    Attempt("encoded dots", "/user/bob/%2e%2e/alice/files/secret.txt"),
    Attempt("encoded slashes", "/user/bob/..%2falice%2ffiles%2fsecret.txt"),
    Attempt("an encoded slash after her name", "/user/alice%2ffiles%2fsecret.txt"),
    Attempt("an encoded name", "/user/%61lice/files/secret.txt"),
    Attempt("double slashes", "/user//alice//files/secret.txt"),
    Attempt("double slashes at the beginning", "//user/alice/files/secret.txt"),
    Attempt("backslashes", "/user\\alice\\files\\secret.txt"),
    Attempt("upper case", "/USER/alice/files/secret.txt"),
    Attempt("a semicolon", "/user/bob/;/../alice/files/secret.txt"),
    Attempt("an absolute address", f"https://{HOST}{_FILE}", hers=True),
    Attempt("out of his own files", "/user/bob/files/../../alice/secret.txt"),
    Attempt("encoded out of his own files", "/user/bob/files/..%2f..%2falice%2fsecret.txt"),
    *(
        Attempt(f"the header {name}", _FILE, headers={name: value})
        for name, value in (
            ("X-Forwarded-User", "alice"),
            ("Remote-User", "alice"),
            ("X-Remote-User", "alice"),
            ("X-JupyterHub-User", "alice"),
            ("X-Forwarded-For", "127.0.0.1"),
            ("X-Forwarded-Host", "node1"),
            ("Host", "node1"),
            ("Authorization", "token alice"),
            ("Authorization", "Basic YWxpY2U6"),
        )
    ),
    *(
        Attempt(f"the header {name} on a page of his own", "/hub/home", headers={name: _FILE})
        for name in ("X-Original-URL", "X-Rewrite-URL")
    ),
    Attempt("what the hub knows of her", "/hub/api/users/alice", hers=True),
    Attempt("her tokens", "/hub/api/users/alice/tokens", hers=True),
    Attempt("a token of hers", "/hub/api/users/alice/tokens", "POST", data={}, hers=True),
    Attempt("the progress of her server", "/hub/api/users/alice/server/progress", hers=True),
    Attempt("the end of her server", "/hub/api/users/alice/server", "DELETE"),
    Attempt("a server of hers", "/hub/api/users/alice/server", "POST", data=_FORM),
    Attempt("her form", "/hub/spawn/alice", hers=True),
    Attempt("all users", "/hub/api/users"),
    Attempt("to be an admin", "/hub/api/users/bob", "PATCH", data={"admin": True}),
    Attempt("to be in the group of admins", "/hub/api/groups/admins/users", "POST", data={"users": ["bob"]}),
    Attempt("a new user", "/hub/api/users/eve", "POST", data={}),
    Attempt("the page of admins", "/hub/admin"),
    Attempt("the routes of the proxy", "/hub/api/proxy"),
    Attempt("another proxy", "/hub/api/proxy", "PATCH", data={"api_url": "https://node1:1"}),
    Attempt("the end of the hub", "/hub/api/shutdown", "POST", data={}),
    Attempt("the services", "/hub/api/services"),
    Attempt("a share of her server", "/hub/api/shares/alice/", "POST", data={"user": "bob"}),
    Attempt("the port of a server that does not wait", "/hub/api/portal/port", "POST", data={"port": 2222}),
]


@pytest.mark.parametrize("attempt", [one for one in _AS_BOB if one.hers], ids=lambda attempt: attempt.what)
def test_the_same_request_is_answered_when_it_is_hers(scene: Scene, attempt: Attempt) -> None:
    answer = scene.alice.follow(attempt.method, attempt.path, data=attempt.data)
    assert answer.status in {200, 201}, (answer.status, answer.text[:300])
    assert (scene.secret in answer.text) == ("secret.txt" in attempt.path)


def came_in(scene: Scene, answer: Answer) -> bool:
    """Whether an answer has more than a refusal, or what is bob's own."""
    return scene.secret in answer.text or answer.status not in _REFUSED


@pytest.mark.parametrize("attempt", _AS_BOB, ids=lambda attempt: attempt.what)
def test_bob_is_refused(scene: Scene, attempt: Attempt) -> None:
    answer = scene.bob.follow(attempt.method, attempt.path, headers=attempt.headers, data=attempt.data)
    if attempt.path == "/hub/home":
        # His own page, as without the header.
        assert scene.secret not in answer.text
        assert "alice" not in answer.text
    else:
        assert not came_in(scene, answer), (answer.status, answer.text[:300])
    assert jobs(scene.cluster, "alice") == scene.job


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", _FILE),
        ("POST", "/user/alice/api/kernels"),
        ("GET", "/hub/api/users/alice"),
        ("DELETE", "/hub/api/users/alice/server"),
        ("GET", "/hub/api/users"),
        ("GET", "/hub/api/proxy"),
        ("POST", "/hub/api/shutdown"),
        ("POST", "/hub/api/portal/port"),
    ],
)
def test_a_token_of_bob_opens_what_is_his_alone(scene: Scene, method: str, path: str) -> None:
    headers = {"Authorization": f"token {scene.bob_token}"}
    data = {"port": 2222} if method == "POST" else None
    answer = Attacker(scene.cluster, scene.cluster.directory).ask(method, path, headers=headers, data=data)
    assert not came_in(scene, answer), (answer.status, answer.text[:300])
    assert jobs(scene.cluster, "alice") == scene.job


def test_a_cookie_of_the_hub_says_who_somebody_is(scene: Scene) -> None:
    """As it is, it is worth what the changed ones below are not."""
    words = f"jupyterhub-hub-login={scene.bob.value('jupyterhub-hub-login')}"
    answer = Attacker(scene.cluster, scene.cluster.directory).ask("GET", "/hub/api/user", cookie=words)
    assert (answer.status, json.loads(answer.text)["name"]) == (200, "bob")


@pytest.mark.parametrize(
    "cookie", ["of his server", "of the hub", "without its signature", "the session alone"]
)
def test_a_cookie_of_another_is_worth_nothing(scene: Scene, cookie: str) -> None:
    """Under her server's name; changed; and of hers the one that says nothing of who she is."""
    thief = Attacker(scene.cluster, scene.cluster.directory)
    signed = scene.bob.value("jupyterhub-hub-login")
    assert signed
    sent = {
        "of his server": {"jupyterhub-user-alice": scene.bob.value("jupyterhub-user-bob")},
        "of the hub": {"jupyterhub-user-alice": signed},
        "without its signature": {"jupyterhub-hub-login": signed.rpartition("|")[0] + "|" + "0" * 64},
        "the session alone": {"jupyterhub-session-id": scene.alice.value("jupyterhub-session-id")},
    }[cookie]
    assert all(sent.values()), sent
    words = "; ".join(f"{name}={value}" for name, value in sent.items())
    answer = thief.ask("GET", _FILE, cookie=words)
    assert scene.secret not in answer.text
    assert answer.status in _REFUSED | REDIRECTS
    assert thief.ask("GET", "/hub/api/user", cookie=words).status == 403


_FORGED = [
    ("DELETE", "/hub/api/users/alice/server", None, None),
    ("POST", "/hub/api/users/alice/tokens", None, {}),
    ("POST", "/user/alice/api/kernels", None, {"name": "python3"}),
    ("POST", "/user/alice/api/terminals", None, {}),
    ("POST", "/hub/spawn/alice", _FORM, None),
    ("POST", "/hub/jobs", {"job": "JOB"}, None),
]


@pytest.mark.parametrize("words", ["", "made up", "of bob"])
@pytest.mark.parametrize("forged", _FORGED, ids=lambda forged: f"{forged[0]} {forged[1]}")
def test_a_request_that_another_page_makes_alice_send_is_refused(
    scene: Scene, words: str, forged: tuple[str, str, dict[str, str] | None, object]
) -> None:
    """Her browser sends her cookies along, and cannot know the token."""
    method, path, form, data = forged
    scene.bob.ask("GET", "/hub/jobs")
    sent = scene.bob.xsrf("/hub/jobs") if words == "of bob" else words.replace(" ", "")
    if form is not None:
        form = {name: value.replace("JOB", scene.job) for name, value in form.items()}
        form |= {"_xsrf": sent} if sent else {}
    headers = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    answer = scene.alice.ask(method, path, headers=headers, form=form, data=data, token=sent)
    assert answer.status == 403, answer.text[:300]
    assert jobs(scene.cluster, "alice", "%T") == "RUNNING"


@pytest.mark.parametrize(
    "path", ["/user/alice/api/kernels/KERNEL/channels", "/user/alice/terminals/websocket/1"]
)
def test_another_page_opens_no_websocket_in_the_browser_of_alice(scene: Scene, path: str) -> None:
    """What a page of the portal opens in the same way."""
    scene.alice.follow("GET", "/user/alice/api/kernels")
    kernel = scene.alice.ask("POST", "/user/alice/api/kernels", data={"name": "python3"})
    scene.alice.ask("POST", "/user/alice/api/terminals", data={})
    assert kernel.status == 201
    path = path.replace("KERNEL", json.loads(kernel.text)["id"])
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    origins = {f"https://{HOST}": 101, "https://elsewhere.example": 403}
    for origin, status in origins.items():
        answer = scene.alice.ask("GET", path, headers={**headers, "Origin": origin})
        assert answer.status == status, origin


@pytest.mark.parametrize(
    "form",
    [
        {"partition": "deploy-validate"},
        {"partition": "theirs"},
        {"partition": "none"},
        {"partition": "batch,theirs"},
        {"partition": "batch --uid=0"},
        {"partition": "../batch"},
        {"account": "deploy-validate"},
        {"account": "root"},
        {"account": "research\n#SBATCH --uid=0"},
        {"qos": "none"},
        {"qos": "normal;id"},
        {"qos": "$(id)"},
        {"gpus": "2"},
        {"gpus": "-1"},
        {"gpus": "1", "gpu_type": "h100"},
        {"gpus": "1", "gpu_type": "a100:1,gpu:a100"},
        {"gpus": "1e1"},
        {"cpus": "2"},
        {"cpus": "0"},
        {"memory_gb": "2"},
        {"memory_gb": "1G --wrap=id"},
        {"memory_gb": "0"},
        {"minutes": "121"},
        {"minutes": "1-0"},
        {"minutes": "99999999999"},
        {"minutes": "\u0661"},
        {"environment": "other"},
        {"environment": "plain\nid"},
        {"environment": "`id`"},
        {"environment": "image:none"},
        {"environment": "image:../base"},
        {"environment": "own:image", "image": ""},
        {"environment": "own:image", "image": "../bob/own.sqsh"},
        {"environment": "own:image", "image": "/home/own.sqsh --container-mounts=/etc:/host"},
        {"environment": "own:image", "image": "/home/own.sqsh\n#SBATCH --uid=0"},
        {"environment": "own:image", "image": "$(id)"},
        {"environment": "own:image", "image": "file:///etc/shadow"},
        {"environment": "own:image", "image": "/etc/../home/bob/own.sqsh"},
        {"environment": "image:base", "image": "/home/bob/own.sqsh"},
        {"environment": "plain", "image": "/home/bob/own.sqsh"},
        {"environment": "image:base", "image": "/home/base.sqsh --container-mounts=/etc:/host"},
        {"environment": "image:base", "container-mounts": "/etc:/host"},
        {"app": "other"},
        {"wrap": "id"},
        {"nodelist": "node1"},
        {"reservation": "theirs"},
        {"cmd": "id"},
    ],
    ids=json.dumps,
)
def test_a_form_that_asks_for_more_starts_nothing(
    portal: Cluster, asker: Attacker, form: dict[str, str]
) -> None:
    """Neither by the page nor by the hub's API, which takes options that no form has seen."""
    asker.ask("GET", "/hub/spawn/user0")
    sent = {**_FORM, **form}
    answer = asker.ask("POST", "/hub/spawn/user0", form={**sent, "_xsrf": asker.xsrf("/hub/spawn")})
    assert answer.status in {200, 400}
    assert "Error: " in answer.text
    answer = asker.ask("POST", "/hub/api/users/user0/server", data=sent)
    assert answer.status == 400, answer.text
    assert jobs(portal, "user0") == ""


@pytest.mark.parametrize("way", ["page", "API"])
def test_the_form_as_it_is_starts_a_server(portal: Cluster, asker: Attacker, way: str) -> None:
    """What is refused above is refused for the one value that differs."""
    asker.ask("GET", "/hub/spawn/user0")
    if way == "page":
        form = {**_FORM, "_xsrf": asker.xsrf("/hub/spawn")}
        assert asker.ask("POST", "/hub/spawn/user0", form=form).status == 302
    else:
        assert asker.ask("POST", "/hub/api/users/user0/server", data=_FORM).status in {201, 202}

    def is_ready() -> bool:
        servers = json.loads(asker.ask("GET", "/hub/api/users/user0").text)["servers"]
        return bool(servers.get("", {}).get("ready"))

    wait_until("it is ready", is_ready, 120)
    assert jobs(portal, "user0") != ""
    assert ask(portal, "user0", "stop")["server"] == {}
    wait_until("its job is gone", lambda: jobs(portal, "user0") == "", 60)


@pytest.fixture(scope="module")
def asker(portal: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Attacker:
    """Somebody without a server."""
    found = Attacker(portal, tmp_path_factory.mktemp("asker"))
    found.log_in("user0")
    return found


@pytest.mark.parametrize("job", ["JOB", "JOB\n1", "JOB;id", "--user=alice", "-u alice", "JOB 1", ""])
def test_the_job_of_alice_is_not_to_be_cancelled_by_bob(scene: Scene, job: str) -> None:
    scene.bob.ask("GET", "/hub/jobs")
    form = {"job": job.replace("JOB", scene.job), "_xsrf": scene.bob.xsrf("/hub/jobs")}
    answer = scene.bob.ask("POST", "/hub/jobs", form=form)
    assert answer.status == 502
    assert 'role="alert"' in answer.text
    assert jobs(scene.cluster, "alice", "%T") == "RUNNING"


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("none", "batch"),
        ("gpu", "theirs"),
        ("gpu", "deploy-validate"),
        ("gpu", "batch,theirs"),
        ("../gpu", "batch"),
        ("..%2fgpu", "batch"),
        ("/etc/passwd", "batch"),
        ("gpu\n#SBATCH --uid=0", "batch"),
        ("gpu", "batch\n#SBATCH --uid=0"),
        ("gpu", "batch --wrap=id"),
        ("$(id)", "batch"),
        ("", ""),
    ],
)
def test_a_template_that_is_not_on_offer_is_no_job(
    portal: Cluster, asker: Attacker, name: str, partition: str
) -> None:
    """Nor does a script that a browser sends along become one."""
    asker.ask("GET", "/hub/jobs")
    form = {"do": "template", "name": name, "partition": partition, "script": "#!/bin/sh\nid\n"}
    answer = asker.ask("POST", "/hub/jobs", form={**form, "_xsrf": asker.xsrf("/hub/jobs")})
    assert answer.status == 502
    assert "There is no such template" in answer.text
    assert jobs(portal, "user0") == ""


def test_what_is_known_of_her_server_is_said_to_nobody_else(scene: Scene) -> None:
    hers, his = (who.ask("GET", "/hub/portal/server") for who in (scene.alice, scene.bob))
    job = re.compile(rf"\bjob {scene.job}\b", re.IGNORECASE)
    assert job.search(hers.text)
    assert (his.status, job.search(his.text)) == (200, None)
    stranger = Attacker(scene.cluster, scene.cluster.directory).ask("GET", "/hub/portal/server")
    assert stranger.status in REDIRECTS


@pytest.mark.parametrize(
    "next_page",
    [
        "https://elsewhere.example/",
        "//elsewhere.example/",
        "/\\elsewhere.example/",
        "https:elsewhere.example",
        "\\\\elsewhere.example",
        "/%2f/elsewhere.example",
        "javascript:alert(1)",
    ],
)
def test_a_login_leads_nowhere_else(
    portal: Cluster, tmp_path_factory: pytest.TempPathFactory, next_page: str
) -> None:
    somebody = Attacker(portal, tmp_path_factory.mktemp("somebody"))
    answer = somebody.log_in("user1", next_page=next_page)
    assert answer.status == 302
    # A path of the portal's; browsers take two slashes, of either kind, for the beginning of a name.
    assert re.match(rf"(https://{HOST})?/(?![/\\])", answer.headers["Location"]), answer.headers["Location"]


@pytest.mark.parametrize(
    "path", ["/hub/login", "/hub/home", "/hub/jobs", "/hub/spawn/alice", "/user/alice/lab"]
)
def test_no_other_page_shows_one_of_the_portal_within_its_own(scene: Scene, path: str) -> None:
    somebody = Attacker(scene.cluster, scene.cluster.directory) if path == "/hub/login" else scene.alice
    answer = somebody.follow("GET", path)
    policy = answer.headers.get("Content-Security-Policy", "")
    assert "frame-ancestors 'none'" in policy or "frame-ancestors 'self'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "name", ["root", "slurm", "slurm-portal", "nobody", "../alice", "alice\n", "Alice", "ALICE"]
)
def test_an_account_of_the_system_or_another_spelling_does_not_log_in(
    portal: Cluster, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """The word is alice's, so that a name which became hers on the way would come in as somebody else."""
    somebody = Attacker(portal, tmp_path_factory.mktemp("somebody"))
    answer = somebody.log_in(name, password="a word of alice 7391")  # noqa: S106
    if answer.status == 302:
        # Logins are compared in lower case and without blanks around: it is alice, as herself.
        assert name.strip().lower() == "alice"
        assert json.loads(somebody.ask("GET", "/hub/api/user").text)["name"] == "alice"
    else:
        assert answer.status == 403


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("node", "https://{node}:{port}/user/alice/api/kernels"),
        ("node", "http://{node}:{port}/user/alice/api/kernels"),
        ("node", "https://login1:444/hub/api/users"),
        ("login", "https://{node}:{port}/user/alice/api/kernels"),
        ("login", "https://127.0.0.1:8001/api/routes"),
        ("login", "http://127.0.0.1:8001/api/routes"),
        ("node", "https://login1:8001/api/routes"),
    ],
)
def test_ports_behind_the_proxy_answer_nobody_without_a_certificate(
    scene: Scene, where: str, place: str
) -> None:
    url = place.format(node=scene.node, port=scene.port)
    target = urlsplit(url)
    listening = scene.cluster.on(
        scene.node if target.hostname == scene.node else HOST, "ss", "--listening", "--tcp", "--numeric"
    )
    assert f":{target.port} " in listening
    host = HOST if where == "login" else scene.node
    code = f"curl --silent --insecure --max-time 20 --write-out %{{http_code}} --output /dev/null {url}"
    if not scene.cluster.on(host, "sh", "-c", "command -v curl || true"):
        code = (
            f'{_python_of(host)} -I -c "import ssl, urllib.request as r; '
            f"r.urlopen('{url}', timeout=20, context=ssl._create_unverified_context())\""
        )
        said = scene.cluster.as_user(code, user="bob", host=host, expect=1)
        assert any(
            words in said for words in ("SSL", "Remote end closed", "refused", "timed out", "reset")
        ), said
        return
    assert scene.cluster.as_user(code, user="bob", host=host, expect=None).startswith("000")


def _python_of(host: str) -> str:
    return "python3" if host == HOST else PYTHON


def test_the_certificate_of_his_own_server_opens_no_other(scene: Scene) -> None:
    """From a cell of bob's, with what his server itself has."""
    url = f"https://{scene.node}:{scene.port}/user/alice/api/kernels"
    code = f"""
import os, requests, glob
cert = (os.environ["JUPYTERHUB_SSL_CERTFILE"], os.environ["JUPYTERHUB_SSL_KEYFILE"])
token = {{"Authorization": "token " + os.environ["JUPYTERHUB_API_TOKEN"]}}
try:
    print("ANSWER", requests.get({url!r}, cert=cert, headers=token, verify=False, timeout=20).status_code)
except requests.RequestException as problem:
    print("ANSWER", type(problem).__name__)
"""
    # A warning of an unchecked certificate may come after it.
    said = re.findall(r"ANSWER (\w+)", ask(scene.cluster, "bob", "run", code))
    assert said in (["SSLError"], ["ConnectionError"], ["403"]), said


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("GET", "user", {"200"}),
        ("GET", "users/alice", {"403", "404"}),
        ("GET", "users", {"403"}),
        ("GET", "proxy", {"403"}),
        ("DELETE", "users/alice/server", {"403", "404"}),
        ("POST", "shutdown", {"403"}),
    ],
)
def test_the_token_of_his_own_server_opens_nothing_of_another_at_the_hub(
    scene: Scene, method: str, path: str, statuses: set[str]
) -> None:
    """From a cell of bob's, at the hub's own port."""
    code = f"""
import os, requests
cert = (os.environ["JUPYTERHUB_SSL_CERTFILE"], os.environ["JUPYTERHUB_SSL_KEYFILE"])
token = {{"Authorization": "token " + os.environ["JUPYTERHUB_API_TOKEN"]}}
url = os.environ["JUPYTERHUB_API_URL"] + "/{path}"
done = requests.request({method!r}, url, cert=cert, headers=token, timeout=20,
                        verify=os.environ["JUPYTERHUB_SSL_CLIENT_CA"])
print("ANSWER", done.status_code)
"""
    said = re.findall(r"ANSWER (\w+)", ask(scene.cluster, "bob", "run", code))
    assert len(said) == 1
    assert set(said) <= statuses, said
    assert jobs(scene.cluster, "alice") == scene.job


@pytest.mark.parametrize(
    "path",
    [
        "/etc/slurm-portal/token",
        "/etc/slurm-portal/cookie_secret",
        "/etc/slurm-portal/settings.json",
        "/etc/slurm-portal/tls.key",
        "/var/lib/slurm-portal/portal.sqlite",
    ],
)
def test_secrets_of_the_hub_are_read_by_nobody(scene: Scene, path: str) -> None:
    scene.cluster.on(HOST, "test", "-s", path)
    assert "Permission denied" in scene.cluster.as_user(f"cat {path}", user="bob", host=HOST, expect=1)


def test_the_socket_of_the_helper_takes_nobody_but_the_hub(scene: Scene) -> None:
    code = "import socket; socket.socket(socket.AF_UNIX).connect('/run/slurm-portal-helper.socket')"
    said = scene.cluster.as_user(f'python3 -c "{code}"', user="bob", host=HOST, expect=1)
    assert "Permission denied" in said


def test_what_her_server_holds_on_the_node_is_hers(scene: Scene) -> None:
    """Its environment with the token, its certificate, its output, and the sockets of its programs."""
    cluster, node = scene.cluster, scene.node
    assert scene.alice.follow("GET", "/user/alice/tensorboard/").status == 200
    process = cluster.on(node, "pgrep", "--newest", "--uid=alice", "--full", "jupyterhub-singleuser").strip()
    # A job may have a /tmp of its own.
    seen = f"find /proc/{process}/root/tmp -maxdepth 1 -name 'portal-*'"
    place = cluster.on(node, "sh", "-c", seen).strip()
    sockets = cluster.on(node, "find", place, "-type", "s").split()
    assert place
    assert sockets
    for path in (f"/proc/{process}/environ", f"{place}/keyfile", "/home/alice/.slurm-portal.log"):
        cluster.on(node, "cat", path)
        assert "Permission denied" in cluster.as_user(f"cat {path}", user="bob", host=node, expect=1), path
    for path in sockets:
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"
        said = cluster.as_user(f'{PYTHON} -I -c "{code}"', user="bob", host=node, expect=1)
        assert "Permission denied" in said, path


_LISTENER = """
import pathlib, pwd, time
import zmq

hers, context, known, heard = pwd.getpwnam("alice").pw_uid, zmq.Context(), {}, []
deadline = time.monotonic() + 100
while heard.count(b"to everybody") < 50 and time.monotonic() < deadline:
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        port = words[1].split(":")[1]
        if words[3] == "0A" and int(words[7]) == hers and port not in known:
            known[port] = context.socket(zmq.SUB)
            known[port].subscribe(b"")
            known[port].connect(f"tcp://127.0.0.1:{int(port, 16)}")
    for one in known.values():
        while one.poll(20):
            heard += one.recv_multipart()
print("HEARD", b"to everybody" in heard, any(b"to her alone" in one for one in heard))
"""
_SPEAKER = """
import os, time, zmq
everybody = zmq.Context().socket(zmq.PUB)
everybody.bind_to_random_port("tcp://127.0.0.1")
while not os.path.exists("/home/alice/enough"):
    everybody.send(b"to everybody")
    print("to her alone", flush=True)
    time.sleep(0.1)
"""


def test_bob_does_not_hear_what_cells_of_hers_say(scene: Scene) -> None:
    """On a port of the node he would: he hears what a cell of hers sends on one."""
    cluster = scene.cluster
    cluster.as_user("rm -f enough")
    with ThreadPoolExecutor(1) as pool:
        cell = pool.submit(ask, cluster, "alice", "run", _SPEAKER)
        try:
            said = cluster.as_user(f"{PYTHON} -I - <<'end'\n{_LISTENER}end", user="bob", host=scene.node)
        finally:
            cluster.as_user("touch enough")
        assert "to her alone" in cell.result()
    assert "HEARD True False" in said, said


def test_her_kernels_have_no_debugger_that_he_could_use(scene: Scene) -> None:
    """It listens on a port of the node, and runs what anybody sends."""
    page = scene.alice.follow("GET", "/user/alice/lab").text
    (off,) = re.findall(r'"disabledExtensions": (\[[^]]*\])', page)
    assert "@jupyterlab/debugger-extension" in json.loads(off)


@pytest.mark.parametrize(
    "command",
    [
        "sacct --allusers --noheader --format=user,jobid",
        "sacct --user=alice --noheader --format=user,jobid",
        "sacct --jobs=JOB --noheader --format=user,jobid",
        "squeue --noheader --format='%u %i'",
        "squeue --user=alice --noheader --format='%u %i'",
        "scontrol show job JOB",
        "scontrol show jobs",
        "sstat --allsteps --jobs=JOB --noheader",
    ],
)
def test_with_private_data_bob_reads_nothing_of_her_jobs(scene: Scene, command: str) -> None:
    command = command.replace("JOB", scene.job)
    assert re.search(rf"\b{scene.job}\b", scene.cluster.as_user(command))
    said = scene.cluster.as_user(command, user="bob", expect=None)
    assert "alice" not in said
    assert f"JobId={scene.job}" not in said


def test_with_private_data_his_page_of_jobs_has_none_of_hers(scene: Scene) -> None:
    hers, his = (who.follow("GET", "/hub/jobs").text for who in (scene.alice, scene.bob))
    assert f"Cancel job {scene.job}" in hers
    assert f"Cancel job {scene.job}" not in his
    assert "alice" not in his


_TAKE_ALONG = """
import os, shutil, urllib.parse
for name in ("CERTFILE", "KEYFILE"):
    shutil.copyfile(os.environ[f"JUPYTERHUB_SSL_{name}"], f"/home/bob/{name}")
print("PORT", urllib.parse.urlsplit(os.environ["JUPYTERHUB_API_URL"]).port)
"""
_IN_THE_PLACE_OF_THE_HUB = """
import http.server, socket, ssl, threading, urllib.error, urllib.request

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a page of bob")

class OnIpv6(http.server.HTTPServer):
    address_family = socket.AF_INET6

for kind in (http.server.HTTPServer, OnIpv6):
    try:
        server = kind(("", PORT), Page)
    except PermissionError:
        print("REFUSED")
    except OSError:
        # By both at once it has the port, where it gets it at all.
        print("TAKEN")
    else:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain("CERTFILE", "KEYFILE")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
trusted = ssl.create_default_context(cafile="/usr/local/lib/slurm-portal/authority.crt")
try:
    page = urllib.request.urlopen("https://login1/hub/login", timeout=60, context=trusted)
    print("PAGE", page.status, page.read().decode())
except urllib.error.HTTPError as answer:
    print("PAGE", answer.code)
"""


def test_bob_is_not_asked_for_the_login_while_the_hub_is_away(scene: Scene) -> None:
    """With his server's certificate, which is of the authority that the proxy trusts."""
    cluster = scene.cluster
    found = re.search(r"PORT (\d+)", ask(cluster, "bob", "run", _TAKE_ALONG))
    assert found
    code = _IN_THE_PLACE_OF_THE_HUB.replace("PORT", found[1], 1)
    cluster.on(HOST, "systemctl", "stop", "slurm-portal")
    try:
        said = cluster.as_user(f"python3 -I - <<'end'\n{code}end", user="bob", host=HOST)
    finally:
        cluster.on(HOST, "systemctl", "start", "slurm-portal")
    assert said.split() == ["REFUSED", "REFUSED", "PAGE", "503"], said
    wait_until("the hub answers", lambda: scene.bob.ask("GET", "/hub/login").status in {200, 302}, 180)


def test_in_the_end_her_server_was_never_touched(scene: Scene) -> None:
    assert jobs(scene.cluster, "alice", "%i %T") == f"{scene.job} RUNNING"
    wait_until("she comes in", lambda: scene.alice.follow("GET", _FILE).text.strip() == scene.secret, 60)
