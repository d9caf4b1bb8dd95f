"""People of a real LDAP server: who they are, who comes in, and what goes on while it is away."""

import time
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess

import pytest

from deploy.plan.probes import probes
from molecule.conftest import MACHINES, Converge, On

DIRECTORY = "directory"
ROOT_DN = "cn=root,dc=site,dc=example"
PASSWORD = "of-lena-in-a-test"  # noqa: S105

# Types a password where ssh asks for it, as somebody at a terminal.
TYPE = """
import os, pty, sys
password, command = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
said, typed = b"", False
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    said += piece
    if not typed and b"assword:" in said:
        os.write(terminal, password.encode() + b"\\n")
        typed = True
os.write(1, said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def wait(condition: Callable[[], bool], seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return holds


def change(on: On, text: str) -> None:
    """Changes the directory, as its own root, whose password is the reader's."""
    words = ("ldapmodify", "-x", "-ZZ", "-H", f"ldap://molecule-sssd-{DIRECTORY}", "-D", ROOT_DN)
    command = f"LDAPTLS_CACERT=/srv/directory/ca.crt {' '.join(words)} -w $(cat /root/reader)"
    on(DIRECTORY, "sh", "-c", command, data=text)


def ssh(on: On, machine: str, user: str, *command: str) -> CompletedProcess[str]:
    """By root's key on the machine."""
    options = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=INFO")
    return on(machine, "timeout", "120", "ssh", *options, f"{user}@localhost", *command, check=False)


def ssh_with_password(on: On, machine: str, user: str, password: str, *command: str) -> CompletedProcess[str]:
    options = (
        "-o",
        "PreferredAuthentications=keyboard-interactive",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "NumberOfPasswordPrompts=1",
    )
    words = ("timeout", "120", "ssh", *options, f"{user}@localhost", *command)
    return on(machine, "python3", "-c", TYPE, password, *words, check=False)


@pytest.fixture(scope="session")
def people(on: On) -> None:
    """Keys and a password in the directory, which the machines have not seen yet."""
    for user in ("lena", "omar", "vera", "pia"):
        keys = "".join(
            f"sshPublicKey: {on(machine, 'cat', '/root/.ssh/id_ed25519.pub').stdout}" for machine in MACHINES
        )
        change(on, f"dn: uid={user},dc=site,dc=example\nchangetype: modify\nreplace: sshPublicKey\n{keys}")
    kept = on(DIRECTORY, "slappasswd", "-s", PASSWORD).stdout
    for user in ("lena", "pia"):
        entry = f"dn: uid={user},dc=site,dc=example\nchangetype: modify\n"
        change(on, f"{entry}replace: userPassword\nuserPassword: {kept}")
    for machine in MACHINES:
        on(machine, "sss_cache", "--everything")


@pytest.fixture
def away(on: On) -> Iterator[None]:
    on(DIRECTORY, "systemctl", "stop", "directory")
    yield
    on(DIRECTORY, "systemctl", "start", "directory")


@pytest.fixture
def hung(on: On) -> Iterator[None]:
    on(DIRECTORY, "systemctl", "kill", "--signal=STOP", "directory")
    yield
    on(DIRECTORY, "systemctl", "kill", "--signal=CONT", "directory")


def test_people_have_names_ids_groups_and_homes_here(on: On, machine: str) -> None:
    assert on(machine, "getent", "passwd", "lena").stdout == "lena:*:20001:20010:Lena:/home/lena:/bin/sh\n"
    assert "20000(research)" in on(machine, "id", "lena").stdout
    assert on(machine, "getent", "passwd", "20001").stdout.startswith("lena:")
    # Nobody reads the whole directory.
    assert "lena" not in on(machine, "getent", "passwd").stdout


def test_ids_and_groups_of_the_system_do_not_come_from_the_directory(on: On, machine: str) -> None:
    assert on(machine, "getent", "passwd", "low", check=False).returncode == 2
    assert "sudo" not in on(machine, "id", "lena").stdout
    assert on(machine, "sudo", "-l", "-U", "lena").stdout.endswith(
        "is not allowed to run sudo on " + (on(machine, "hostname").stdout.strip() + ".\n")
    )


@pytest.mark.usefixtures("people")
def test_a_key_of_the_directory_lets_in_and_the_first_login_makes_a_home(on: On, machine: str) -> None:
    answer = ssh(on, machine, "lena", "pwd; stat --format='%U %a' .; ls -A .bashrc")
    assert answer.stdout == "/home/lena\nlena 700\n.bashrc\n", answer.stderr


@pytest.mark.usefixtures("people")
def test_whoever_is_in_no_allowed_group_is_refused(on: On, machine: str) -> None:
    assert on(machine, "id", "-un", "vera").stdout == "vera\n"
    answer = ssh(on, machine, "vera", "true")
    assert answer.returncode == 255, answer.stdout
    assert on(machine, "test", "-e", "/home/vera", check=False).returncode == 1


@pytest.mark.usefixtures("people")
def test_a_password_of_the_directory_lets_in_and_another_does_not(on: On, machine: str) -> None:
    answer = ssh_with_password(on, machine, "lena", PASSWORD, "id", "-un")
    assert "\nlena\n" in answer.stdout, answer.stdout + answer.stderr
    refused = ssh_with_password(on, machine, "lena", "something else", "id", "-un")
    assert refused.returncode == 255


@pytest.mark.usefixtures("people")
def test_who_has_the_name_of_an_account_of_the_host_does_not_become_it(on: On, machine: str) -> None:
    """The directory's pia, who is in a group that may log in, neither by her key nor by her password."""
    members = "dn: cn=research,dc=site,dc=example\nchangetype: modify\n{}: memberUid\nmemberUid: pia\n"
    change(on, members.format("add"))
    try:
        on(machine, "sss_cache", "--everything")
        assert ssh(on, machine, "lena", "id", "-un").stdout == "lena\n"
        assert "ssh-ed25519" in on(machine, "/usr/bin/sss_ssh_authorizedkeys", "pia").stdout
        assert ssh(on, machine, "pia", "id", "-un").returncode == 255
        answer = ssh_with_password(on, machine, "pia", PASSWORD, "id", "-un")
        assert answer.returncode == 255, answer.stdout
        # Its own password is what counts.
        on(machine, "chpasswd", data="pia:of-the-host\n")
        answer = ssh_with_password(on, machine, "pia", "of-the-host", "id", "-u")
        assert "\n2002\n" in answer.stdout, answer.stdout
    finally:
        change(on, members.format("delete"))


@pytest.mark.usefixtures("people")
def test_members_of_the_admins_group_are_root_by_sudo(on: On, machine: str) -> None:
    assert ssh(on, machine, "omar", "sudo", "-n", "id", "-un").stdout == "root\n"


def test_who_did_not_log_in_yet_has_a_home_soon(on: On, machine: str) -> None:
    def has_home() -> bool:
        return on(machine, "test", "-d", "/home/kim", check=False).returncode == 0

    assert wait(has_home, 240), on(machine, "journalctl", "-u", "deploy-directory-homes", "-n", "20").stdout
    assert on(machine, "stat", "--format=%U %a", "/home/kim").stdout == "kim 700\n"


def test_an_account_of_the_host_itself_is_let_in_only_where_its_own_lines_say_so(
    on: On, machine: str
) -> None:
    """The package's own profile would end PAM's question there."""
    lines = on(machine, "cat", "/etc/pam.d/common-account").stdout
    assert "sufficient" not in lines
    assert "pam_sss.so" in lines


def test_a_name_that_is_in_both_is_told(on: On, machine: str) -> None:
    (probe,) = (one for one in probes("sssd") if one.get("must_be_empty"))
    said = on(machine, *probe["argv"]).stdout.splitlines()
    (told,) = (line for line in said if "pia" in line)
    assert told == (
        "account pia is in /etc/passwd and in the directory (uid: 2002 here, 20005 there): "
        "this machine's own counts; keep one of the two"
    )
    assert said == [told]
    assert on(machine, "id", "-u", "pia").stdout == "2002\n"


def test_only_root_reads_how_the_directory_is_asked(on: On, machine: str) -> None:
    mode = on(machine, "stat", "--format=%U %G %a", "/etc/sssd/sssd.conf").stdout
    assert mode == f"root root {'600' if machine == 'bookworm' else '640'}\n"
    assert on(machine, "systemctl", "--failed", "--plain", "--no-legend").stdout == ""


@pytest.mark.usefixtures("people", "away")
def test_while_the_directory_is_away_people_stay_and_root_never_waits(
    on: On, machine: str, converge: Converge
) -> None:
    on(machine, "sss_cache", "--everything", check=False)
    assert "20000(research)" in on(machine, "id", "lena").stdout
    answer = ssh_with_password(on, machine, "lena", PASSWORD, "id", "-un")
    assert "\nlena\n" in answer.stdout, answer.stdout
    assert ssh(on, machine, "root", "id", "-un").stdout == "root\n"
    # Nor does a run fail that has nothing to change.
    again = converge(only=machine)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "changed=0" in again.stdout


@pytest.mark.usefixtures("people", "hung")
def test_a_directory_that_hangs_holds_up_nobody_of_the_host(on: On, machine: str) -> None:
    on(machine, "sss_cache", "--everything", check=False)
    for command in (("getent", "passwd", "root"), ("id", "root"), ("getent", "group", "sudo")):
        assert on(machine, "timeout", "60", *command).stdout
    assert ssh(on, machine, "root", "id", "-un").stdout == "root\n"
    assert on(machine, "timeout", "60", "id", "-un", "lena", check=False).stdout == "lena\n"
    assert on(machine, "timeout", "60", "getent", "passwd", "nobody-there", check=False).returncode == 2


def test_another_authority_is_refused_and_nothing_changes(on: On, machine: str, converge: Converge) -> None:
    before = on(machine, "cat", "/etc/sssd/directory-ca.crt").stdout
    answer = converge(only=machine, authority="other")
    assert answer.returncode == 2, answer.stdout
    assert "ldap://molecule-sssd-directory: its certificate is not accepted" in answer.stdout + answer.stderr
    assert on(machine, "cat", "/etc/sssd/directory-ca.crt").stdout == before
    assert on(machine, "getent", "passwd", "lena").stdout


@pytest.mark.usefixtures("people")
def test_who_is_taken_out_of_the_group_is_refused(on: On, machine: str) -> None:
    try:
        change(
            on,
            "dn: cn=research,dc=site,dc=example\nchangetype: modify\nreplace: memberUid\nmemberUid: kim\n",
        )
        assert wait(lambda: ssh(on, machine, "lena", "true").returncode == 255)
    finally:
        change(
            on,
            "dn: cn=research,dc=site,dc=example\nchangetype: modify\nreplace: memberUid\n"
            "memberUid: lena\nmemberUid: kim\n",
        )
    assert wait(lambda: ssh(on, machine, "lena", "true").returncode == 0)


def test_where_homes_are_made_elsewhere_none_is_made_here(on: On, converge: Converge) -> None:
    machine = MACHINES[-1]
    answer = converge(only=machine, creates_homes=False)
    try:
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert "mkhomedir" not in on(machine, "cat", "/etc/pam.d/common-session").stdout
        assert (
            on(machine, "systemctl", "is-active", "deploy-directory-homes.timer", check=False).returncode != 0
        )
    finally:
        assert converge(only=machine).returncode == 0
    assert "mkhomedir" in on(machine, "cat", "/etc/pam.d/common-session").stdout
