"""Who has an account pushes, everybody pulls, caches answer without their registry, all of it by TLS."""

import json
import time
from collections.abc import Iterator

import pytest

from molecule.conftest import Converge, On

USER, PASSWORD = "registry", "the-password-of-this-scenario-alone"
CLIENT = """
import base64, hashlib, json, ssl, sys, urllib.error, urllib.request
place, login, todo, name, tag, size = sys.argv[1:]
LIST = "application/vnd.oci.image.index.v1+json"
context = ssl.create_default_context(cafile="/etc/slurm-registry/tls.crt") if "https" in place else None

def ask(method, path, data=None, kind="application/octet-stream"):
    url = path if path.startswith("http") else place + path
    request = urllib.request.Request(url, data=data, method=method)
    request.add_header("Content-Type", kind)
    request.add_header("Accept", "application/vnd.oci.image.manifest.v1+json, " + LIST)
    if login:
        request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    try:
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.headers, problem.read()

def blob(content):
    status, headers, said = ask("POST", f"/v2/{name}/blobs/uploads/", b"")
    if status != 202:
        return status, said
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    join = "&" if "?" in headers["Location"] else "?"
    status, _, said = ask("PUT", headers["Location"] + join + "digest=" + digest, content)
    return status, digest if status == 201 else said

def manifest(made, reference=None):
    # By its digest where it gets no name of its own.
    content = json.dumps(made).encode()
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    kind = made["mediaType"]
    status = ask("PUT", f"/v2/{name}/manifests/{reference or digest}", content, kind)[0]
    return status, {"mediaType": kind, "digest": digest, "size": len(content)}

def push_list():
    kind = "application/vnd.oci.image.manifest.v1+json"
    platforms = []
    for system in ("amd64", "arm64"):
        parts = []
        for each in (json.dumps({"architecture": system}).encode(), system.encode() * 100):
            status, digest = blob(each)
            if status != 201:
                return status
            parts.append({"mediaType": "application/octet-stream", "digest": digest, "size": len(each)})
        made = {"schemaVersion": 2, "mediaType": kind, "config": parts[0], "layers": parts[1:]}
        status, platform = manifest(made)
        if status != 201:
            return status
        platforms.append({**platform, "platform": {"architecture": system, "os": "linux"}})
    listed = {"schemaVersion": 2, "mediaType": LIST, "manifests": platforms}
    return manifest(listed, tag)[0]

def pull_list():
    # The size of each platform's layer, or what its manifest answers.
    status, _, said = ask("GET", f"/v2/{name}/manifests/{tag}")
    if status != 200:
        return status
    found = []
    for platform in json.loads(said)["manifests"]:
        status, _, said = ask("GET", f"/v2/{name}/manifests/{platform['digest']}")
        layer = json.loads(said)["layers"][0]["digest"] if status == 200 else ""
        found.append(len(ask("GET", f"/v2/{name}/blobs/{layer}")[2]) if layer else status)
    return found

def push():
    content = (tag * 8).encode() * (int(size) // (8 * len(tag)) or 1)
    parts = []
    for each in (json.dumps({"made": tag}).encode(), content):
        status, digest = blob(each)
        if status != 201:
            return status
        parts.append({"mediaType": "application/octet-stream", "digest": digest, "size": len(each)})
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": parts[0], "layers": parts[1:]}
    return ask("PUT", f"/v2/{name}/manifests/{tag}", json.dumps(manifest).encode(), kind)[0]

def pull():
    status, _, said = ask("GET", f"/v2/{name}/manifests/{tag}")
    if status != 200:
        return status
    layer = json.loads(said)["layers"][0]["digest"]
    status, _, content = ask("GET", f"/v2/{name}/blobs/{layer}")
    return [status, len(content), content[:len(tag)].decode()]

todos = {"push": push, "pull": pull, "push-list": push_list, "pull-list": pull_list}
print(json.dumps(todos[todo]()))
"""
COLLECTED = "/var/lib/slurm-registry/collected"
HERE, THERE = "https://127.0.0.1:5000", "http://127.0.0.1:5999"


def client(
    on: On, machine: str, todo: str, name: str, *, login: str = "", size: int = 1000, place: str = HERE
) -> object:
    """The status of a push, or of a pull that is refused; of one that is not also what came."""
    repository, _, tag = name.partition(":")
    said = on(machine, "python3", "-c", CLIENT, place, login, todo, repository, tag, str(size))
    return json.loads(said.stdout)


def push(on: On, machine: str, name: str, **how: object) -> object:
    login = str(how.pop("login", f"{USER}:{PASSWORD}"))
    return client(on, machine, "push", name, login=login, **how)  # type: ignore[arg-type]


def keep(on: On, machine: str) -> None:
    """What the timer does."""
    on(machine, "systemctl", "start", "slurm-registry-upkeep.service")


@pytest.fixture(autouse=True)
def collected(on: On, machine: str) -> None:
    """A new registry frees space two minutes after its host's boot, and takes no pushes meanwhile."""
    if on(machine, "test", "-e", COLLECTED, check=False).returncode != 0:
        keep(on, machine)


def collect(on: On, machine: str) -> None:
    """What the timer does at the hour when space is freed, for images that were pushed before today."""
    images = "/srv/registry/own/docker/registry/v2/repositories"
    on(machine, "find", images, "-type", "f", "-exec", "touch", "--date=2 hours ago", "{}", "+")
    on(machine, "rm", "--force", COLLECTED)
    keep(on, machine)


def held(on: On, machine: str) -> set[str]:
    """The blobs of the site's own part."""
    place = "/srv/registry/own/docker/registry/v2/blobs/sha256"
    return set(on(machine, "sh", "-c", f"ls {place}/*").stdout.split())


def metrics(on: On, machine: str) -> dict[str, float]:
    text = on(machine, "cat", "/srv/metrics/registry.prom").stdout
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines())}


def comes(on: On, machine: str, *command: str) -> bool:
    deadline = time.monotonic() + 60
    while on(machine, *command, check=False).returncode != 0:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.3)
    return True


def test_who_has_an_account_pushes_and_everybody_pulls(on: On, machine: str) -> None:
    assert push(on, machine, "team/first:1.0", login="") == 401
    assert push(on, machine, "team/first:1.0", login=f"{USER}:wrong") == 401
    assert push(on, machine, "team/first:1.0") == 201
    assert push(on, machine, "team/second:1.0", login="laura:another-one-of-this-scenario") == 201
    assert client(on, machine, "pull", "team/first:1.0") == [200, 984, "1.0"]


def test_who_does_not_say_what_it_takes_sees_images_too(on: On, machine: str) -> None:
    """Enroot asks so whether it needs an account."""
    assert push(on, machine, "team/any:1.0") == 201
    trusted = ("--cacert", "/etc/slurm-registry/tls.crt")
    said = on(machine, "curl", "--silent", "--head", *trusted, f"{HERE}/v2/team/any/manifests/1.0").stdout
    assert said.startswith("HTTP/1.1 200")


def test_programs_that_push_learn_that_there_are_accounts(on: On, machine: str) -> None:
    said = on(
        machine, "curl", "--silent", "--head", "--cacert", "/etc/slurm-registry/tls.crt", f"{HERE}/v2/"
    ).stdout
    assert said.startswith("HTTP/1.1 401")
    assert 'www-authenticate: basic realm="registry"' in said.lower()


def test_its_certificate_is_for_its_names_alone(on: On, machine: str) -> None:
    def status(name: str) -> int:
        way = ("--cacert", "/etc/slurm-registry/tls.crt", "--resolve", f"{name}:5000:127.0.0.1")
        return on(machine, "curl", "--silent", *way, f"https://{name}:5000/health", check=False).returncode

    assert (status("registry.test"), status("elsewhere.test")) == (0, 60)


def test_a_cache_answers_without_its_registry_and_takes_no_pushes(on: On, machine: str) -> None:
    assert push(on, machine, "library/tool:2", place=THERE, login="") == 201
    assert client(on, machine, "pull", "docker.io/library/tool:2") == [200, 1000, "2"]
    # It keeps what it fetched when it has answered.
    assert comes(
        on, machine, "sh", "-c", "ls /srv/registry/docker.io/docker/registry/v2/blobs/sha256/*/*/data"
    )
    on(machine, "systemctl", "stop", "upstream")
    try:
        assert client(on, machine, "pull", "docker.io/library/tool:2") == [200, 1000, "2"]
    finally:
        on(machine, "systemctl", "start", "upstream")
    assert push(on, machine, "docker.io/library/mine:1") == 403


def test_a_cache_goes_out_through_the_proxy(on: On, machine: str) -> None:
    assert push(on, machine, "team/far:3", place=THERE, login="") == 201
    assert client(on, machine, "pull", "far.test/team/far:3") == [200, 1000, "3"]
    file = "/etc/slurm-registry/environment"
    assert on(machine, "stat", "--format=%U %a", file).stdout == "root 600\n"


def test_a_layer_that_is_too_large_is_refused(on: On, machine: str) -> None:
    assert push(on, machine, "team/large:1", size=3_000_000) == 413


def test_nobody_of_the_host_gets_round_the_accounts(on: On, machine: str) -> None:
    answer = on(
        machine,
        *("su", "mallory", "--command"),
        "curl --silent --unix-socket /run/slurm-registry/own/socket http://x/v2/",
        check=False,
    )
    assert answer.returncode != 0
    readable = "ls /srv/registry; cat /etc/slurm-registry/tls.key /etc/slurm-registry/accounts"
    assert on(machine, "su", "mallory", "--command", readable, check=False).stdout == ""
    assert on(machine, "systemctl", "is-active", "docker-registry", check=False).stdout == "inactive\n"


def test_what_no_tag_names_goes(on: On, machine: str) -> None:
    assert push(on, machine, "team/again:swap") == 201
    first = held(on, machine)
    assert push(on, machine, "team/again:swap", size=2000) == 201
    collect(on, machine)
    assert not first <= held(on, machine)
    assert client(on, machine, "pull", "team/again:swap") == [200, 1984, "swap"]
    assert push(on, machine, "team/again:swap") == 201
    assert metrics(on, machine)["deploy_registry_collected_timestamp_seconds"] > time.time() - 600


def test_the_platforms_of_an_image_stay(on: On, machine: str) -> None:
    """Their manifests have no tags: the list's tag leads to them."""
    login = f"{USER}:{PASSWORD}"
    assert client(on, machine, "push-list", "team/platforms:1", login=login) == 201
    collect(on, machine)
    assert client(on, machine, "pull-list", "team/platforms:1") == [500, 500]
    before = held(on, machine)
    # The tag names something else: list and platforms go together.
    assert push(on, machine, "team/platforms:1") == 201
    collect(on, machine)
    assert len(before - held(on, machine)) == 7


def test_what_was_just_pushed_waits_for_its_list(on: On, machine: str) -> None:
    assert push(on, machine, "team/early:swap") == 201
    first = held(on, machine)
    assert push(on, machine, "team/early:swap", size=3000) == 201
    on(machine, "rm", "--force", COLLECTED)
    keep(on, machine)
    assert first <= held(on, machine)


def test_nobody_pushes_while_space_is_freed(on: On, machine: str) -> None:
    on(machine, "touch", "/var/lib/slurm-registry/collecting")
    try:
        assert push(on, machine, "team/now:1") == 503
    finally:
        on(machine, "rm", "/var/lib/slurm-registry/collecting")


@pytest.fixture
def full(on: On, machine: str) -> Iterator[None]:
    on(machine, "truncate", "--size=0", "/srv/registry/own/ballast")
    on(machine, "fallocate", "--length=1100M", "/srv/registry/own/ballast")
    keep(on, machine)
    yield
    on(machine, "rm", "/srv/registry/own/ballast")
    keep(on, machine)
    assert push(on, machine, "team/first:2.0") == 201


@pytest.mark.usefixtures("full")
def test_a_full_registry_empties_its_caches_and_takes_no_pushes(on: On, machine: str) -> None:
    assert push(on, machine, "team/more:1") == 507
    told = metrics(on, machine)
    assert told["deploy_registry_full"] == 1
    assert told['deploy_registry_up{part="own"}'] == told['deploy_registry_up{part="docker.io"}'] == 1
    assert (
        told['deploy_registry_bytes{part="docker.io"}'] < 100_000 < told['deploy_registry_bytes{part="own"}']
    )
    # What was there can be pulled, and a cache fetches again.
    assert client(on, machine, "pull", "team/first:1.0") == [200, 984, "1.0"]
    assert comes(on, machine, "test", "-S", "/run/slurm-registry/docker.io/socket")
    assert push(on, machine, "library/tool:2", place=THERE, login="") == 201
    assert client(on, machine, "pull", "docker.io/library/tool:2") == [200, 1000, "2"]


@pytest.fixture
def closed(converge: Converge) -> Iterator[None]:
    answer = converge(pull="accounts", upstreams=[], proxy="")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    yield
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.usefixtures("closed")
def test_pulling_with_accounts_alone_and_a_cache_that_is_declared_no_more(on: On, machine: str) -> None:
    assert client(on, machine, "pull", "team/first:1.0") == 401
    assert client(on, machine, "pull", "team/first:1.0", login=f"{USER}:{PASSWORD}") == [200, 984, "1.0"]
    assert on(machine, "sh", "-c", "ls /srv/registry /etc/slurm-registry/*.yml").stdout.split() == [
        "/etc/slurm-registry/own.yml",
        "/srv/registry:",
        "own",
    ]
    assert on(machine, "ls", "/etc/slurm-registry/environment", check=False).returncode != 0
    unit = "slurm-registry@docker.io.service"
    assert on(machine, "systemctl", "is-enabled", unit, check=False).stdout == "disabled\n"
