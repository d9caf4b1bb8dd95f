"""The keys of auth/slurm: two stages of a rotation, and what daemons say on their sockets."""

import base64
import hashlib
import hmac
import json
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.unit.kiosks import kiosk
from tests.unit.roles.loading import load_module

module = import_module("ansible.module_utils.slurm_key_set")
files = load_module("roles/slurm_auth/library/slurm_keys.py")
current = load_module("roles/slurm_auth/library/slurm_keys_current.py")

OLD, NEW, OLDER = "old_" * 12, "new_" * 12, "older" * 10
NOW = 1_800_000_000


def has(*keys: Any) -> list[Any]:  # noqa: ANN401 - keys as JSON has them
    return list(keys)


def test_a_host_without_keys_gets_the_one() -> None:
    for stage in ("accept", "sign"):
        assert module.staged([], NEW, stage, 300, NOW) == [{**module.entry(NEW), "use": "default"}]


def test_what_a_host_has_is_left() -> None:
    there = module.staged([], NEW, "sign", 300, NOW)
    ended = [*there, {**module.entry(OLD), "exp": NOW - 1}]
    for stage in ("accept", "sign"):
        assert module.staged(there, NEW, stage, 300, NOW) == there
        assert module.staged(ended, NEW, stage, 300, NOW) == ended


def test_a_new_key_is_believed_before_it_is_signed_with() -> None:
    old = module.staged([], OLD, "sign", 300, NOW)
    believing = module.staged(old, NEW, "accept", 300, NOW)
    assert [key["kid"] for key in believing] == [module.named(OLD), module.named(NEW)]
    assert module.signing(believing)["kid"] == module.named(OLD)
    assert module.staged(believing, NEW, "accept", 300, NOW) == believing
    signing = module.staged(believing, NEW, "sign", 300, NOW)
    assert module.signing(signing)["kid"] == module.named(NEW)
    assert {key["kid"]: key.get("exp") for key in signing} == {
        module.named(NEW): None,
        module.named(OLD): NOW + 300,
    }
    assert [key["kid"] for key in signing if key.get("use") == "default"] == [module.named(NEW)]


def test_what_ended_goes_with_the_next_key_and_what_has_not_keeps_its_end() -> None:
    there = [
        {**module.entry(OLD), "use": "default"},
        {**module.entry(OLDER), "exp": NOW + 5},
        {**module.entry("gone" * 12), "exp": NOW - 5},
    ]
    signing = module.staged(there, NEW, "sign", 300, NOW)
    assert {key["kid"]: key.get("exp") for key in signing} == {
        module.named(NEW): None,
        module.named(OLD): NOW + 300,
        module.named(OLDER): NOW + 5,
    }


@pytest.mark.parametrize("text", ["", "{", "[]", '{"keys": [{}]}', '{"keys": 1}'])
def test_what_slurm_could_not_read_is_written_anew(text: str) -> None:
    assert module.keys_of(text) == []


def test_the_file_is_as_slurm_reads_it() -> None:
    (key,) = json.loads(module.written(module.staged([], NEW, "sign", 300, NOW)))["keys"]
    assert (key["alg"], key["kty"], key["use"]) == ("HS256", "oct", "default")
    assert base64.b64decode(key["k"]).decode() == NEW
    assert NEW[:4] not in key["kid"]
    assert module.keys_of(module.written([key])) == [key]


def test_a_token_is_signed_as_slurm_signs() -> None:
    head, claims, signature = module.token(module.entry(NEW), NOW).split(".")
    wanted = hmac.new(NEW.encode(), f"{head}.{claims}".encode(), hashlib.sha256).digest()
    assert base64.urlsafe_b64decode(signature + "=") == wanted
    assert module.name_in(module.token(module.entry(NEW), NOW)) == module.named(NEW)
    said = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert (said["context"], said["uid"], said["exp"] - said["iat"]) == ("sack", 65534, 10)


@pytest.mark.parametrize("text", ["", "x", "e30.x.y", "!!!.x"])
def test_what_is_no_token_names_no_key(text: str) -> None:
    assert module.name_in(text) == ""


def test_a_daemon_says_what_it_goes_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current.time, "time", lambda: NOW)
    old, new = module.entry(OLD), module.entry(NEW)
    place = tmp_path / "sack.socket"
    asked = current.Kiosk(place)
    assert (asked.runs(), asked.believes(new), asked.signs_with()) == (False, False, "")
    with kiosk(place, signs=module.token(old, NOW), believes={module.token(new, NOW)}):
        assert asked.runs()
        assert asked.signs_with() == old["kid"]
        assert (asked.believes(new), asked.believes(old)) == (True, False)


class Host:
    """A host by the answers of its commands; a daemon goes by what the file said when it read it last."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.active: Collection[str] = ()
        self.by_munge: Collection[str] = ()
        self.leads = "here"
        self.is_deaf = False
        self.commands: list[str] = []
        self.check_mode = False
        self.params: dict[str, Any] = {}
        self.result: dict[str, Any] = {}
        self.read: dict[str, list[Any]] = dict.fromkeys(current.SOCKETS, self.keys)

    @property
    def keys(self) -> list[Any]:
        return list(module.keys_of(self.file.read_text()))

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
        if command[:2] == ["systemctl", "show"]:
            names = command[command.index("--") + 1 :]
            states = ["active" if name in self.active else "inactive" for name in names]
            return 0, "\n\n".join(f"LoadState=loaded\nActiveState={s}\nSubState=x" for s in states), ""
        if "ping" in command:
            return 0, f"Slurmctld(primary) at {self.leads} is UP\n", ""
        self.commands.append(" ".join(command))
        if not self.is_deaf:
            self.read["slurmctld" if command[0] == "scontrol" else command[-1]] = self.keys
        return 0, "", ""

    def exit_json(self, **result: Any) -> None:  # noqa: ANN401
        self.result = result
        raise SystemExit

    def fail_json(self, msg: str) -> None:
        raise AssertionError(msg)

    def places(self, stage: str) -> bool:
        """The module of the file; whether it changed anything."""
        self.params = {"key": NEW, "stage": stage, "overlap": 300}
        with pytest.raises(SystemExit):
            files.main()
        assert NEW not in json.dumps(self.result)
        return bool(self.result["changed"])

    def brings(self, *, servers: bool = False, pending: bool = False) -> list[str]:
        """The module of the daemons; its commands."""
        self.params = {"servers": servers, "pending": pending}
        self.commands.clear()
        with pytest.raises(SystemExit):
            current.main()
        return self.commands

    @property
    def impact(self) -> tuple[str, str]:
        said = self.result["deploy_impact"]
        return said["kind"], said["service"]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """One whose daemons go by the old key."""
    file = tmp_path / "slurm.jwks"
    file.write_text(module.written(module.staged([], OLD, "sign", 300, NOW)))
    file.chmod(0o600)
    made = Host(file)

    class Socket:
        def __init__(self, path: Path) -> None:
            self.name = path.name

        def runs(self) -> bool:
            return self.name not in made.by_munge

        def believes(self, key: Any) -> bool:  # noqa: ANN401 - as JSON has it
            return key["kid"] in {each["kid"] for each in made.read[self.name]}

        def signs_with(self) -> str:
            return str(module.signing(made.read[self.name])["kid"])

    for each in (files, current):
        monkeypatch.setattr(each, "FILE", file)
        monkeypatch.setattr(each, "AnsibleModule", lambda **_: made)
    monkeypatch.setattr(current, "_TOLD_WITHIN", 0.0)
    monkeypatch.setattr(current, "SOCKETS", {name: Path(name) for name in current.SOCKETS})
    monkeypatch.setattr(current, "Kiosk", Socket)
    monkeypatch.setattr(files, "ids_of_slurm", lambda: (file.stat().st_uid, file.stat().st_gid))
    monkeypatch.setattr(current.socket, "gethostname", lambda: "here.site.example")
    return made


def test_daemons_come_to_it_stage_by_stage(host: Host) -> None:
    host.active = ("slurmd", "slurmdbd", "slurmctld")
    assert host.brings(servers=True) + host.brings() == []
    for stage in ("accept", "sign"):
        assert host.places(stage)
        assert host.brings(servers=True) == ["systemctl restart slurmdbd", "scontrol reconfigure"]
        assert host.impact == ("restart", "slurmdbd, slurmctld")
        # Nothing reached it, so it is reloaded.
        assert host.brings() == ["systemctl reload slurmd"]
        assert host.impact == ("reconfigure", "slurmd")
        assert not host.places(stage)
        assert host.brings(servers=True) + host.brings() == []
        assert not host.result["changed"]


def test_what_slurmctld_tells_a_node_is_waited_for(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.active = ("slurmd",)
    monkeypatch.setattr(current, "_TOLD_WITHIN", 60.0)
    monkeypatch.setattr(current.time, "sleep", lambda _: host.read.update(slurmd=host.keys))
    host.places("accept")
    assert host.brings() == []
    assert (host.result["changed"], host.impact) == (True, ("reconfigure", "slurmd"))


def test_what_was_cut_off_is_gone_on_with(host: Host) -> None:
    host.active = ("sackd",)
    host.places("accept")
    assert not host.places("accept")
    assert host.brings() == ["systemctl reload sackd"]


def test_a_daemon_that_was_started_by_munge_is_left_to_its_own_role(host: Host) -> None:
    host.active = host.by_munge = ("slurmd", "slurmctld")
    host.places("accept")
    assert host.brings(servers=True) + host.brings() == []


def test_a_controller_that_stands_by_is_started_anew(host: Host) -> None:
    host.active, host.leads = ("slurmctld",), "other"
    host.places("accept")
    assert host.brings(servers=True) == ["systemctl restart slurmctld"]
    assert host.impact == ("restart", "slurmctld")


def test_a_preview_names_the_daemons_and_does_nothing(host: Host) -> None:
    host.active, host.check_mode = ("sackd", "slurmctld"), True
    before = host.file.read_text()
    for stage in ("accept", "sign"):
        assert host.places(stage)
        assert host.brings(pending=True) == []
        assert host.impact == ("reconfigure", "sackd")
        assert host.brings(pending=True, servers=True) == []
        assert host.impact == ("reconfigure", "slurmctld")
    assert host.file.read_text() == before


def test_a_file_that_others_could_read_is_slurms_alone_again(host: Host) -> None:
    host.places("sign")
    host.file.chmod(0o644)
    assert host.places("sign")
    assert host.file.stat().st_mode & 0o777 == 0o600


def test_what_a_daemon_does_not_take_is_an_error(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.active, host.is_deaf = ("slurmd",), True
    monkeypatch.setattr(current, "_PATIENCE", 0.0)
    host.places("accept")
    with pytest.raises(AssertionError, match="slurmd does not take the keys"):
        host.brings()
