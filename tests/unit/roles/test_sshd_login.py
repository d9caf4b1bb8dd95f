import importlib

import pytest

import tests.unit.roles.loading  # noqa: F401 - has Ansible find the roles' own code

module = importlib.import_module("ansible.module_utils.sshd_login")

OPEN = """\
port 22
permitrootlogin without-password
passwordauthentication yes
kbdinteractiveauthentication no
authorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2
"""
KEYS_ONLY = OPEN.replace("passwordauthentication yes", "passwordauthentication no")


TURNED_OFF = "AuthenticationMethods asks for what is turned off"


@pytest.mark.parametrize(
    ("text", "user", "has_key", "expected"),
    [
        (OPEN, "ops", False, ""),
        (KEYS_ONLY, "ops", True, ""),
        ("PasswordAuthentication yes\nDenyUsers ops\n", "ops", True, "DenyUsers or DenyGroups names it"),
        ("PermitRootLogin no\n", "root", True, "PermitRootLogin is no"),
        (KEYS_ONLY, "ops", False, "passwords are not accepted, and it has no key"),
        (OPEN, "root", True, ""),
        (OPEN, "root", False, "PermitRootLogin is without-password, and root has no key"),
        (OPEN.replace("without-password", "no"), "root", True, "PermitRootLogin is no"),
        (OPEN.replace("without-password", "no"), "ops", True, ""),
        (OPEN + "allowusers alice bob\nallowusers carol\n", "ops", True, "AllowUsers does not name it"),
        (OPEN + "allowusers alice bob\nallowusers o*@192.0.2.*\n", "ops", True, ""),
        (OPEN + "allowusers ops@10.0.0.*\n", "ops", True, "AllowUsers does not name it"),
        (OPEN + "allowgroups wheel\n", "ops", True, "AllowGroups names none of its groups"),
        (OPEN + "allowgroups wheel sudo\n", "ops", True, ""),
        (OPEN + "denygroups su*\n", "ops", True, "DenyUsers or DenyGroups names it"),
        (OPEN + "denyusers ops\n", "ops", True, "DenyUsers or DenyGroups names it"),
        (OPEN + "authenticationmethods any\n", "ops", True, ""),
        (OPEN + "authenticationmethods publickey,keyboard-interactive:pam\n", "ops", True, TURNED_OFF),
        (OPEN + "authenticationmethods publickey,keyboard-interactive publickey,password\n", "ops", True, ""),
    ],
)
def test_who_could_log_in(*, text: str, user: str, has_key: bool, expected: str) -> None:
    login = module.Login(user, ["ops", "sudo"], "192.0.2.7", has_key)
    assert module.refusal(module.effective(text), login) == expected
