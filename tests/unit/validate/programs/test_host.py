"""The program that every host runs, on this one."""

import os
import socket
import struct
from pathlib import Path

import pytest

from deploy.validate.programs import host
from tests.unit.kiosks import kiosk
from tests.unit.roles.loading import load_module


def test_commands_say_why_they_fail() -> None:
    assert host.ask(("true",)) == {"code": 0, "out": "", "why": ""}
    assert host.ask(("sh", "-c", "echo one; echo two >&2; echo --- >&2; exit 3")) == {
        "code": 3,
        "out": "one\n",
        "why": "two",
    }
    assert host.ask(("sh", "-c", "echo one; exit 3"))["why"] == "one"
    assert host.ask(("/nowhere/scontrol",)) == {
        "code": None,
        "out": "",
        "why": "/nowhere/scontrol: No such file or directory",
    }


def test_a_command_that_waits_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_SECONDS", 0.2)
    assert host.ask(("sleep", "30")) == {"code": None, "out": "", "why": "no answer within 0.2 s"}


def test_all_of_slurms_commands_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(host._ENVIRONMENT, "PATH", "/nowhere")
    told = host.slurm()
    assert told.keys() == host.SLURM_COMMANDS.keys()
    assert told["qos"]["why"] == "sacctmgr: No such file or directory"


def test_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_CONF_DIRECTORIES", ("/nowhere", str(tmp_path)))
    monkeypatch.setattr(host, "_ENVIRONMENT_FILE", str(tmp_path / "environment"))
    assert host.configuration() == {"directory": None, "hashes": {}, "plugins": [], "server": ""}
    (tmp_path / "environment").write_text('SLURM_CONF_SERVER=old\nSLURM_CONF_SERVER="ctl1,ctl2"\nA=b\n')
    assert host.configuration()["server"] == "ctl1,ctl2"
    (tmp_path / "slurm.conf").write_text("ClusterName=x\n")
    (tmp_path / "plugstack.conf").write_text(
        f"# required /no.so\nrequired {tmp_path}/slurm.conf x=1\noptional /nowhere/a.so # why\ninclude x/*\n"
        "required beside.so x=1\noptional gone.so\n"
    )
    places = tmp_path / "lib" / "slurm-wlm"
    places.mkdir(parents=True)
    (places / "beside.so").touch()
    monkeypatch.setattr(host, "_PLUGIN_DIRECTORIES", (f"{tmp_path}/*/slurm-wlm",))
    found = host.configuration()
    assert found["directory"] == str(tmp_path)
    assert [*found["hashes"]] == ["slurm.conf", "plugstack.conf"]
    assert found["plugins"] == [
        {"path": f"{tmp_path}/slurm.conf", "exists": True},
        {"path": "/nowhere/a.so", "exists": False},
        {"path": "beside.so", "exists": True},
        {"path": "gone.so", "exists": False},
    ]
    (tmp_path / "slurm.conf").write_text(f"ClusterName=x\nPluginDir=/nowhere:{tmp_path}\n")
    (tmp_path / "gone.so").touch()
    assert [plugin["exists"] for plugin in host.configuration()["plugins"]] == [True, False, False, True]


def test_names_and_ways() -> None:
    assert host.addresses(["127.0.0.1", "no.such.name.invalid"]) == {
        "127.0.0.1": ["127.0.0.1"],
        "no.such.name.invalid": [],
    }
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert host.refusals([["open", "127.0.0.1", port]]) == {}
    assert host.refusals([["shut", "127.0.0.1", port]]) == {f"shut:{port}": "Connection refused"}
    assert host.refusals([]) == {}


def test_a_connection_is_asked_for_with_a_checksum_that_adds_up() -> None:
    for family, own, address in (
        (socket.AF_INET, "10.0.0.1", "10.0.0.2"),
        (socket.AF_INET6, "fd00::1", "fd00::2"),
    ):
        segment = host.asking(family, own, address, 40001, 6818)
        ends = socket.inet_pton(family, own) + socket.inet_pton(family, address)
        words = struct.unpack(f"!{len(ends) // 2 + 12}H", ends + struct.pack("!HH", 6, 20) + segment)
        assert sum(words) % 0xFFFF == 0
        assert (struct.unpack("!HH", segment[:4]), segment[13]) == ((40001, 6818), 2)


@pytest.mark.parametrize(
    ("ports", "flags", "answer"),
    [
        ((6818, 40001), 0x12, ""),
        ((6818, 40001), 0x14, "Connection refused"),
        ((6818, 40001), 0x10, None),
        ((22, 40001), 0x12, None),
        ((6818, 40002), 0x12, None),
    ],
)
def test_what_is_answered(ports: tuple[int, int], flags: int, answer: str | None) -> None:
    segment = struct.pack("!HHIIBBHHH", *ports, 1, 2, 5 << 4, flags, 0, 0, 0)
    assert host.answered(segment, 6818, 40001) == answer
    assert host.answered(segment[:12], 6818, 40001) is None


def test_mounts_and_space() -> None:
    assert host.mounted(["/proc", "/nowhere", "/proc/"]) == {
        "/proc": "proc",
        "/nowhere": "",
        "/proc/": "proc",
    }
    space = host.file_systems(["/proc/self", "/tmp", "/nowhere"])
    assert space.keys() == {"/proc/self", "/tmp"}
    said = os.statvfs("/tmp")
    assert space["/tmp"]
    assert space["/tmp"][1::2] == [said.f_blocks * said.f_frsize, said.f_files]
    assert 0 <= space["/tmp"][0] <= space["/tmp"][1]


def test_a_file_system_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_SECONDS", 0.3)
    monkeypatch.setattr(host, "_ASK_SPACE", ("sh", "-c", 'test "$0" = / && echo 1 1 1 1 1 || exec sleep 600'))
    assert host.file_systems(["/home", "/", "/work"]) == {"/home": None, "/": [1, 1, 1, 1], "/work": None}


def test_what_is_mounted_and_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answers(paths: list[str]) -> dict[str, list[int] | None]:
        asked.extend(paths)
        return {"/": [1, 1, 1, 1], "/home": None, "/none": None}

    table = {"/home": "nfs4", "/stale": "nfs4", "/none": ""}
    monkeypatch.setattr(host, "file_systems", answers)
    monkeypatch.setattr(host, "mounted", lambda paths: {path: table[path] for path in paths})
    words = {"auth_type": "", "names": [], "peers": [], "asks_slurm": False}
    told = host.look({**words, "mounts": [*table], "directories": ["/", "/home"]})
    assert asked == ["/", "/home", *table]
    assert told["silent"] == ["/home", "/stale"]
    assert told["space"] == {"/": [1, 1, 1, 1], "/home": None}


def test_what_jobs_left() -> None:
    marker = f"left-{os.getpid()}"
    path = Path("/tmp", marker)
    path.touch()
    try:
        assert host.leftovers({"user": None, "marker": marker}) == {"leftovers": [str(path)]}
        assert host.leftovers({"user": "no-such-user", "marker": ""}) == {"leftovers": []}
    finally:
        path.unlink()
    assert any("pytest" in line for line in host.processes_of("root")) or os.getuid() != 0


def test_without_munge_there_is_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(host._ENVIRONMENT, "PATH", "/nowhere")
    assert host.credential("auth/munge") == ""
    assert host.unseal({"auth_type": "auth/munge", "credentials": {"a": ""}})["undecoded"].keys() == {"a"}


def test_credentials_that_can_be_decoded_are_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unmunge = tmp_path / "unmunge"
    unmunge.write_text('#!/bin/sh\nread line; [ "$line" = good ] || { echo "unmunge: no" >&2; exit 1; }\n')
    unmunge.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setitem(host._ENVIRONMENT, "PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = host.unseal({"auth_type": "auth/munge", "credentials": {"a": "good\n", "b": "bad\n"}})
    assert found == {"undecoded": {"b": "unmunge: no"}}


def test_what_slurm_signs_is_judged_by_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_NOBODY", os.getuid())
    paths = (str(tmp_path / "none.socket"), str(tmp_path / "sack.socket"))
    monkeypatch.setattr(host, "_KIOSKS", paths)
    credentials = {"a": "good", "b": "bad"}
    asked = {"auth_type": "auth/slurm", "credentials": credentials}
    assert host.credential("auth/slurm") == ""
    assert host.unseal(asked)["undecoded"].keys() == credentials.keys()
    with kiosk(Path(paths[1]), signs="good", believes={"good"}):
        assert host.credential("auth/slurm") == "good"
        assert host.unseal(asked) == {"undecoded": {"b": f"the daemon of {paths[1]} refuses it"}}


module = load_module("playbooks/library/host_program.py")


class _Ended(Exception):  # noqa: N818 - as Ansible ends
    pass


def call(monkeypatch: pytest.MonkeyPatch, **given: object) -> dict[str, object]:
    """What the module says."""
    said: dict[str, object] = {}

    class Stub:
        def __init__(self, **_: object) -> None:
            self.params = {"argument": {}, "secrets": {}, "user": None, "seconds": 30, **given}

        def exit_json(self, **result: object) -> None:
            said.update(result)
            raise _Ended

        fail_json = exit_json

    monkeypatch.setattr(module, "AnsibleModule", Stub)
    with pytest.raises(_Ended):
        module.main()
    return said


def test_a_secret_reaches_the_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "def tell(a):\n    return {'number': a['number'], 'length': len(a['secrets']['word'])}\n"
    given = {"program": program, "function": "tell", "argument": {"number": 7}, "secrets": {"word": "abc"}}
    assert call(monkeypatch, **given)["deploy_answer"] == {"number": 7, "length": 3}
    assert given["argument"] == {"number": 7}


DOUBLE = "def double(a):\n    print('words')\n    return {'twice': 2 * a['number'], 'text': a['text']}\n"


def test_a_program_gets_its_argument_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    argument = {"number": 2, "text": 'it\'s "é"\n'}
    said = call(monkeypatch, program=DOUBLE, function="double", argument=argument)
    assert said == {"changed": False, "deploy_answer": {"twice": 4, "text": 'it\'s "é"\n'}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(a):\n    raise SystemExit('it is over')\n", "it is over"),
        ("def f(a):\n    raise ValueError('odd')\n", "ValueError: odd"),
        ("import os\nos._exit(0)\n", "the program gave no answer"),
    ],
)
def test_a_program_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    assert call(monkeypatch, program=text, function="f")["msg"] == message


# Who ran it is gone by then; here it is this process.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = f"def f(a):\n    import sys\n    sys.stdin.read()\n    open({str(tmp_path / 'end')!r}, 'w')\n"
    assert call(monkeypatch, program=text, function="f", seconds=1)["msg"] == "no answer within 1 s"
    for _ in range(100):
        if (tmp_path / "end").exists():
            return
        host.ask(("sleep", "0.1"))
    pytest.fail("it did not notice that nobody waits")


def test_a_user_who_is_not_there_is_named_however_long_the_program_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = call(monkeypatch, program="#" * 2_000_000, function="f", user="no-such-user")
    assert "no-such-user" in str(said["msg"])
