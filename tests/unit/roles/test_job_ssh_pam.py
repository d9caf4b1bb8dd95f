"""What sshd says of ordinary users before their logins are tied to jobs."""

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/job_ssh/library/job_ssh_pam.py")


class Refused(Exception):  # noqa: N818 - it is what happens
    pass


class Machine:
    """As much of AnsibleModule as the module asks for, on a machine whose sshd says something."""

    def __init__(self, said: str, admits: str, *, check_mode: bool) -> None:
        self.said, self.check_mode, self.params = said, check_mode, {"admits": admits}

    def get_bin_path(self, name: str, **_: object) -> str:
        return f"/usr/sbin/{name}"

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
        assert command[:3] == ["/usr/sbin/sshd", "-T", "-C"]
        return 0, self.said, ""

    def fail_json(self, msg: str) -> None:
        raise Refused(msg)


@pytest.mark.parametrize(
    ("said", "admits", "check_mode", "reason"),
    [
        ("usepam yes\nkbdinteractiveauthentication no\n", "users_with_jobs", False, ""),
        ("usepam yes\nkbdinteractiveauthentication yes\n", "users_with_jobs", False, "keyboard-interactive"),
        ("UsePAM yes\nKbdInteractiveAuthentication yes\n", "users_with_jobs", False, "keyboard-interactive"),
        # Before the first run ssh_server has not turned it off yet.
        ("usepam yes\nkbdinteractiveauthentication yes\n", "users_with_jobs", True, ""),
        # Nobody's session is part of a job there.
        ("usepam yes\nkbdinteractiveauthentication yes\n", "nobody", False, ""),
        ("usepam no\nkbdinteractiveauthentication no\n", "nobody", True, "UsePAM no"),
        ("UsePAM no\n", "users_with_jobs", False, "UsePAM no"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    monkeypatch: pytest.MonkeyPatch, *, said: str, admits: str, check_mode: bool, reason: str
) -> None:
    monkeypatch.setattr(module, "_LIBRARIES", ("etc",))
    monkeypatch.setattr(module, "_MODULE", "passwd")
    machine = Machine(said, admits, check_mode=check_mode)
    if not reason:
        module._refuse_what_has_no_effect(machine)
        return
    with pytest.raises(Refused, match=reason):
        module._refuse_what_has_no_effect(machine)
