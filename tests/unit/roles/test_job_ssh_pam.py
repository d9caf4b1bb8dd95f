import pwd

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/job_ssh/library/job_ssh_pam.py")


@pytest.mark.parametrize(
    ("environment", "login_uid", "expected"),
    [
        ({"SUDO_USER": "carol"}, "0", "carol"),
        ({}, "0", "root"),
        ({}, "4294967295", "root"),
        ({}, "", "root"),
    ],
)
def test_the_account_of_this_run(environment: dict[str, str], login_uid: str, expected: str) -> None:
    assert module.connected_as(environment, login_uid) == expected


def test_the_audit_system_knows_who_logged_in() -> None:
    entry = pwd.getpwall()[1]
    assert module.connected_as({}, str(entry.pw_uid)) == entry.pw_name
