import re

import pytest

from tests.unit.roles.loading import load_module

stack = load_module("roles/job_ssh/module_utils/job_ssh_stack.py")

SSHD = """\
# PAM configuration for the Secure Shell service
@include common-auth
account    required     pam_nologin.so
@include common-account
session    required     pam_loginuid.so
@include common-session
session    required     pam_limits.so
@include common-password
"""


def restricted(
    text: str = SSHD, users: tuple[str, ...] = ("admin",), groups: tuple[str, ...] = ("sudo",)
) -> str:
    return str(stack.restricted(text, users, groups))


def test_owners_of_jobs_are_asked_for_last_of_all_accounts() -> None:
    lines = [
        line for line in restricted().splitlines() if re.match("(account|@include common-account)", line)
    ]
    assert lines == [
        "account    required     pam_nologin.so",
        "@include common-account",
        "account sufficient pam_succeed_if.so quiet uid = 0",
        "account sufficient pam_succeed_if.so quiet user in admin",
        "account sufficient pam_succeed_if.so quiet user ingroup sudo",
        "account required pam_slurm_adopt.so action_adopt_failure=deny action_generic_failure=deny",
    ]


def test_jobs_are_looked_for_by_the_name_that_slurmd_was_told() -> None:
    text = str(stack.restricted(SSHD, ["admin"], ["sudo"], "gpu7"))
    (line,) = (line for line in text.splitlines() if "pam_slurm_adopt.so" in line)
    assert line.endswith(" action_generic_failure=deny nodename=gpu7")
    assert stack.restricted(text, ["admin"], ["sudo"], "gpu7") == text
    assert stack.restricted(text, ["admin"], ["sudo"]) == restricted()


def test_where_no_jobs_run_nobody_is_let_in_but_admins() -> None:
    text = str(stack.admins_alone(SSHD, ["admin"], ["sudo"]))
    lines = [line for line in text.splitlines() if re.match("(account|@include common-account)", line)]
    assert lines == [
        "account    required     pam_nologin.so",
        "@include common-account",
        "account sufficient pam_succeed_if.so quiet uid = 0",
        "account sufficient pam_succeed_if.so quiet user in admin",
        "account sufficient pam_succeed_if.so quiet user ingroup sudo",
        "account required pam_deny.so",
    ]
    assert "@include common-session\n" in text
    assert stack.unrestricted(text) == SSHD
    assert stack.admins_alone(text, ["admin"], ["sudo"]) == text
    assert stack.admins_alone(restricted(), ["admin"], ["sudo"]) == text, "of a node that became a server"
    assert stack.restricted(text, ["admin"], ["sudo"]) == restricted()
    with pytest.raises(stack.NotUnderstood, match="account"):
        stack.admins_alone("@include common-session\n", [], [])


@pytest.mark.parametrize(
    ("users", "groups"), [((), ()), (("a",), ()), ((), ("g", "h")), (("b", "a", "b"), ("g",))]
)
def test_an_admins_session_skips_to_the_common_one(users: tuple[str, ...], groups: tuple[str, ...]) -> None:
    lines = restricted(users=users, groups=groups).splitlines()
    lines = lines[lines.index(stack._SESSION_BEGIN) + 1 : lines.index(stack._SESSION_END)]
    for number, line in enumerate(lines):
        if skip := re.match(r"session \[success=(\d+) default=ignore\] pam_succeed_if", line):
            assert lines[number + 1 + int(skip[1])] == "session substack common-session"
    assert lines[-4:] == [
        "session substack deploy-job-session",
        "session optional pam_env.so readenv=0 conffile=/etc/security/job-environment.conf",
        "session [success=1 default=ignore] pam_permit.so",
        "session substack common-session",
    ]
    assert len(lines) == 4 + 1 + bool(users) + bool(groups)


def test_a_second_run_changes_nothing_and_the_way_back_is_whole() -> None:
    once = restricted()
    assert restricted(once) == once
    assert stack.unrestricted(once) == SSHD
    assert restricted(once, users=("other",)) == restricted(users=("other",))


def test_other_lines_stay() -> None:
    text = SSHD.replace("@include common-account", "@include common-account\naccount required pam_access.so")
    after = restricted(text)
    assert stack.unrestricted(after) == text
    assert after.index("pam_access") < after.index("pam_slurm_adopt")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (SSHD.replace("@include common-session", "session required pam_unix.so"), "session"),
        (SSHD + "@include common-session\n", "session"),
        ("@include common-session\n", "account"),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(text: str, missing: str) -> None:
    with pytest.raises(stack.NotUnderstood, match=missing):
        restricted(text)


def test_a_jobs_session_is_the_common_one_that_stays_in_the_jobs_cgroup() -> None:
    common = (
        "session\t[default=1]\tpam_permit.so\n"
        "session\toptional\tpam_systemd.so \n"
        "-session optional pam_systemd_home.so\n"
    )
    assert stack.job_session(common).splitlines()[1:] == [
        "session\t[default=1]\tpam_permit.so",
        "session optional pam_permit.so",
        "-session optional pam_permit.so",
    ]


COMMON = """\
account [success=1 new_authtok_reqd=done default=ignore]\tpam_unix.so
account requisite\tpam_deny.so
account required\tpam_permit.so
"""
ABOVE = "account    required     pam_nologin.so\n"


def objections(text: str, common: str = COMMON) -> list[str]:
    files = {"sshd": text, "common-account": common}
    return [said.partition(" (")[0] for said in stack.objections(lambda name: files.get(name, ""))]


def test_what_a_distribution_writes_lets_nobody_past_the_block() -> None:
    assert objections(restricted()) == []
    assert objections(str(stack.admins_alone(SSHD, ["admin"], []))) == []


@pytest.mark.parametrize(
    "line",
    [
        "account sufficient pam_permit.so\n",
        "-account  SUFFICIENT pam_sss.so\n",
        "account [success=done default=ignore] pam_localuser.so\n",
        "account [ default=ignore success = done ] pam_localuser.so\n",
        "account [success=7 default=ignore] pam_localuser.so\n",
        "account [success=4 default=ignore] pam_localuser.so\n",
    ],
)
def test_a_line_of_others_that_lets_users_past_the_block_is_named(line: str) -> None:
    above = restricted().replace(ABOVE, ABOVE + line)
    assert objections(above) == ["/etc/pam.d/sshd:4"]
    assert objections(SSHD.replace(ABOVE, ABOVE + line)) == [], "everybody may come in"
    below = restricted().replace("session    required     pam_limits.so\n", line)
    assert objections(below) == [], "the block has refused by then"


def test_a_line_in_an_included_file_is_named_where_it_stands() -> None:
    assert objections(restricted(), f"{COMMON}account sufficient pam_localuser.so\n") == [
        "/etc/pam.d/common-account:4"
    ]
    text = restricted().replace("@include common-account", "account include common-account")
    assert objections(text, "account sufficient pam_localuser.so\n") == ["/etc/pam.d/common-account:1"]
    text = restricted().replace("@include common-account", "account substack common-account")
    assert objections(text, "account sufficient pam_localuser.so\n") == [], "a substack ends only itself"
    assert objections(restricted().replace("common-account", "sshd")) == [], "one that includes itself"


def test_a_line_that_undoes_what_the_block_said_is_named() -> None:
    text = restricted() + "account [default=reset] pam_permit.so\n"
    assert len(objections(text)) == 1
