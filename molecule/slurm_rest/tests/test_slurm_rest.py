"""Who has a token of his own sees and submits jobs over TLS; nobody comes in as somebody else."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest

from molecule.conftest import Converge, On

KEY = "a-key-for-this-scenario-alone-of-48-characters.."
VERSION = {"bookworm": "v0.0.38", "trixie": "v0.0.42"}
PLACE = "https://127.0.0.1:6820"
# Slurm 24.11 says 511, network authentication required, where its daemon refuses.
REFUSED = {401, 500, 511}
NOBODY = ("runuser", "--user", "nobody", "--")
_ASK = ("curl", "--silent", "--cacert", "/etc/slurm-rest/tls.crt", "--write-out", "\n%{http_code}")


def token(on: On, machine: str, user: str, *arguments: str) -> str:
    """What `scontrol token` gives a user."""
    said = on(machine, "runuser", "--user", user, "--", "scontrol", "token", *arguments).stdout
    return said.strip().removeprefix("SLURM_JWT=")


def forged(key: str, *, algorithm: str = "HS256", **claims: object) -> str:
    """A token that somebody made without Slurm."""

    def text(part: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")

    now = int(time.time())
    signed = f"{text({'alg': algorithm, 'typ': 'JWT'})}.{text({'iat': now, 'exp': now + 600} | claims)}"
    mac = hmac.new(key.encode(), signed.encode(), hashlib.sha256).digest() if algorithm != "none" else b""
    return f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def ask(
    on: On,
    machine: str,
    path: str,
    *,
    jwt: str = "",
    name: str = "alice",
    data: object = None,
    place: str = PLACE,
) -> tuple[int, str]:
    """Status and text of an answer, asked by somebody who is nobody on the machine."""
    headers = {"X-SLURM-USER-TOKEN": jwt, "X-SLURM-USER-NAME": name, "Content-Type": "application/json"}
    config = "".join(f'header = "{key}: {value}"\n' for key, value in headers.items() if value)
    if data is not None:
        config += f"data = {json.dumps(json.dumps(data))}\n"
    url = place + path.replace("VERSION", VERSION[machine])
    text, _, status = on(machine, *NOBODY, *_ASK, "--config", "-", url, data=config).stdout.rpartition("\n")
    return int(status), text


def submission(machine: str) -> dict[str, Any]:
    script = "#!/bin/sh\nid --user\n"
    job: dict[str, Any] = {"name": "by-rest", "current_working_directory": "/tmp"}
    if machine == "bookworm":
        return {"script": script, "job": job | {"environment": {"PATH": "/usr/bin:/bin"}}}
    return {"job": job | {"script": script, "environment": ["PATH=/usr/bin:/bin"]}}


def names(on: On, machine: str) -> str:
    return on(machine, "squeue", "--noheader", "--states=all", "--format=%u %j").stdout


def test_a_user_sees_the_queue_and_submits_as_himself(on: On, machine: str) -> None:
    jwt = token(on, machine, "alice")
    status, text = ask(on, machine, "/slurm/VERSION/jobs", jwt=jwt)
    assert (status, json.loads(text)["errors"]) == (200, [])
    status, text = ask(on, machine, "/slurm/VERSION/job/submit", jwt=jwt, data=submission(machine))
    assert status == 200, text
    number = json.loads(text)["job_id"]
    shown = on(machine, "scontrol", "show", "job", str(number)).stdout
    assert "UserId=alice(2001)" in shown
    assert "JobName=by-rest" in shown


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        (None, ""),
        (None, "alice"),
        ({"sun": "alice"}, "bob"),
        ({"sun": "alice"}, "root"),
        ({"sun": "alice"}, "slurm"),
        ({"sun": "alice", "exp": 1}, "alice"),
        ({}, "alice"),
    ],
    ids=["none", "a name alone", "another's", "root's", "slurm's", "expired", "of nobody"],
)
def test_whoever_has_no_token_of_his_own_is_refused(
    on: On, machine: str, claims: dict[str, object] | None, name: str
) -> None:
    jwt = "" if claims is None else forged(KEY, **claims)
    before = names(on, machine)
    status, text = ask(on, machine, "/slurm/VERSION/jobs", jwt=jwt, name=name)
    assert status in REFUSED, text
    assert not text.startswith("{") or not json.loads(text).get("jobs")
    status, text = ask(on, machine, "/slurm/VERSION/job/submit", jwt=jwt, name=name, data=submission(machine))
    assert status in REFUSED, text
    assert names(on, machine) == before


def test_a_token_that_is_signed_otherwise_is_refused(on: On, machine: str) -> None:
    # The same by the right key is taken: it is the signature that is refused.
    assert ask(on, machine, "/slurm/VERSION/jobs", jwt=forged(KEY, sun="alice"))[0] == 200
    for jwt in (forged("x" * 48, sun="root"), forged("", algorithm="none", sun="root"), "x.y.z"):
        assert ask(on, machine, "/slurm/VERSION/jobs", jwt=jwt)[0] in REFUSED


def test_a_token_lives_as_long_as_was_said(on: On, machine: str) -> None:
    jwt = token(on, machine, "alice", "lifespan=3")
    assert ask(on, machine, "/slurm/VERSION/ping", jwt=jwt)[0] == 200
    for _ in range(30):
        if ask(on, machine, "/slurm/VERSION/jobs", jwt=jwt)[0] != 200:
            break
        time.sleep(1)
    assert ask(on, machine, "/slurm/VERSION/jobs", jwt=jwt)[0] in REFUSED


def test_nobody_makes_a_token_of_somebody_else(on: On, machine: str) -> None:
    for name in ("root", "bob"):
        make = ("scontrol", "token", f"username={name}")
        answer = on(machine, "runuser", "--user", "alice", "--", *make, check=False)
        assert answer.returncode != 0
        assert "SLURM_JWT=" not in answer.stdout
    assert on(machine, "scontrol", "token", "username=alice").stdout.startswith("SLURM_JWT=")


def test_there_is_no_way_beside_tls(on: On, machine: str) -> None:
    assert ask(on, machine, "/slurm/VERSION/jobs", place="http://127.0.0.1:6820")[0] == 400
    listening = on(machine, "ss", "--listening", "--tcp", "--processes", "--numeric").stdout
    assert "slurmrestd" not in listening
    socket = ("curl", "--silent", "--unix-socket", "/run/slurm-rest/socket", "http://here/slurm/")
    assert on(machine, "runuser", "--user", "alice", "--", *socket, check=False).returncode == 7
    assert on(machine, "runuser", "--user", "www-data", "--", *socket).returncode == 0


def test_nobody_reads_the_key(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format=%a %U", "/etc/slurm/jwt_hs256.key").stdout.split() == [
        "600",
        "slurm",
    ]
    assert on(machine, "stat", "--format=%a %U", "/etc/slurm-rest/tls.key").stdout.split() == ["600", "root"]
    status = on(machine, "sh", "-c", "cat /proc/$(pidof slurmrestd)/status").stdout
    said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    account = on(machine, "id", "--user", "slurm-rest").stdout.strip()
    assert said["Uid"].split() == [account] * 4
    assert int(said["CapBnd"], 16) == int(said["CapEff"], 16) == 0
    assert said["NoNewPrivs"] == "1"


def test_what_is_not_of_the_api_is_not_passed_on(on: On, machine: str) -> None:
    for path in ("/", "/metrics", "/slurm", "/slurmdbx/"):
        assert ask(on, machine, path)[0] == 404
    assert ask(on, machine, "/openapi", jwt=token(on, machine, "alice"))[0] in {200, 301, 404}


def test_health_says_whether_it_answers(on: On, machine: str) -> None:
    assert ask(on, machine, "/health") == (200, "slurmrestd answers\n")
    on(machine, "systemctl", "stop", "slurmrestd")
    assert ask(on, machine, "/health")[0] == 502
    on(machine, "systemctl", "start", "slurmrestd")
    for _ in range(30):
        if ask(on, machine, "/health")[0] == 200:
            break
        time.sleep(1)
    assert ask(on, machine, "/health")[0] == 200


def test_it_is_started_again_when_it_dies(on: On, machine: str) -> None:
    before = on(machine, "pidof", "slurmrestd").stdout
    on(machine, "systemctl", "kill", "--signal=SIGKILL", "slurmrestd")
    for _ in range(60):
        if ask(on, machine, "/health")[0] == 200 and on(machine, "pidof", "slurmrestd").stdout != before:
            break
        time.sleep(1)
    assert ask(on, machine, "/health")[0] == 200


def test_where_users_make_none_only_root_does(on: On, converge: Converge, machine: str) -> None:
    assert converge(only=machine, users_make_tokens=False).returncode == 0
    refused = on(machine, "runuser", "--user", "alice", "--", "scontrol", "token", check=False)
    assert refused.returncode != 0
    assert "SLURM_JWT=" not in refused.stdout
    made = on(machine, "scontrol", "token", "username=alice").stdout.strip().removeprefix("SLURM_JWT=")
    assert ask(on, machine, "/slurm/VERSION/jobs", jwt=made)[0] == 200
    assert converge(only=machine).returncode == 0


def test_with_another_key_tokens_of_before_are_refused(on: On, converge: Converge, machine: str) -> None:
    before = token(on, machine, "alice")
    assert ask(on, machine, "/slurm/VERSION/jobs", jwt=before)[0] == 200
    assert converge(only=machine, tokens_key=KEY[::-1]).returncode == 0
    assert ask(on, machine, "/slurm/VERSION/jobs", jwt=before)[0] in REFUSED
    assert ask(on, machine, "/slurm/VERSION/jobs", jwt=token(on, machine, "alice"))[0] == 200
    assert converge(only=machine).returncode == 0


def test_too_many_requests_are_refused(on: On, converge: Converge, machine: str) -> None:
    assert converge(only=machine, requests_per_second=1).returncode == 0
    # By one process: a second of a slow machine is one more that is let through.
    many = ("--parallel", "--output", "/dev/null", "--write-out", "%{http_code} ", f"{PLACE}/health?[1-60]")
    said = on(machine, "curl", "--silent", "--cacert", "/etc/slurm-rest/tls.crt", *many).stdout.split()
    assert len(said) == 60
    assert set(said) == {"200", "429"}
    assert converge(only=machine).returncode == 0
