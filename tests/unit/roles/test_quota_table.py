import json
import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.unit.roles.loading import ROOT

table = import_module("ansible.module_utils.quota_table")
Limits = table.Limits

REPORT = """\
User,BlockStatus,FileStatus,BlockUsed,BlockSoftLimit,BlockHardLimit,BlockGrace,FileUsed,FileSoftLimit,FileHardLimit,FileGrace
root,ok,ok,20,0,0,0,2,0,0,0
alice,soft,ok,11264,10240,20480,1790000000,3,0,50,0
"""


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("7", 7), ("4K", 4), ("2M", 2048), ("1G", 1 << 20), ("3T", 3 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert table.kibibytes(text) == size


def test_a_report() -> None:
    assert table.reported("user", REPORT) == {
        ("user", "root"): Limits(),
        ("user", "alice"): Limits(10240, 20480, 50),
    }


def test_limits_of_ones_own_take_the_place_of_those_of_each() -> None:
    filesystem = {
        "path": "/home",
        "each_user": {"space": "20M", "space_warning": "10M", "files": 50},
        "users": [{"name": "bob", "space": "1G"}],
        "groups": [{"name": "physics", "space": "1T"}],
    }
    assert table.wanted(filesystem, ["alice", "bob"]) == {
        ("user", "alice"): Limits(10240, 20480, 50),
        ("user", "bob"): Limits(0, 1 << 20, 0),
        ("group", "physics"): Limits(0, 1 << 30, 0),
    }


def test_only_single_users_without_limits_of_each() -> None:
    assert table.wanted({"path": "/home", "users": None, "groups": None}, ["alice"]) == {}


def test_the_command() -> None:
    assert table.change_command("group", "physics", Limits(1, 2, 3), "/home") == [
        *("setquota", "-g", "physics", "1", "2", "0", "3", "/home")
    ]


QUOTA = """\
#!/bin/sh
case "$*" in
*--user*) cat <<END
Disk quotas for user alice (uid 2001):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
          /home   11264*  10240   20480 1790000000     3       0       50       0
END
;;
*) echo 'Disk quotas for group alice (gid 2001): none' ;;
esac
exit 1
"""


def test_people_are_shown_what_quota_says(tmp_path: Path) -> None:
    program = tmp_path / "quota"
    program.write_text(QUOTA)
    program.chmod(0o755)
    command = [sys.executable, str(ROOT / "roles/quotas/files/show-quotas")]
    answer = subprocess.run(
        command, env={"PATH": f"{tmp_path}:/bin:/usr/bin"}, capture_output=True, text=True, check=True
    )
    head, line = answer.stdout.splitlines()
    assert head.split() == ["file", "system", "of", "used", "limit", "files", "limit"]
    assert line.split() == [
        *("/home", "user", "alice", "11.0", "MiB", "20.0", "MiB", "55", "%"),
        *("3", "50", "6", "%", "over", "the", "limit"),
    ]
    answer = subprocess.run(
        [*command, "--json"],
        env={"PATH": f"{tmp_path}:/bin:/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    (row,) = json.loads(answer.stdout)
    assert (row["file_system"], row["used"], row["limit"]) == ("/home", "11.0 MiB", "20.0 MiB")
    assert (row["files_share"], row["warning"]) == ("6 %", "over the limit")


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
10.0.0.5:/home /home nfs4 rw,vers=4.2 0 0
[fd00::5]:/srv/data /data nfs rw 0 0
sunrpc /run/rpc_pipefs rpc_pipefs rw 0 0
"""


def test_a_server_that_says_nothing_is_named() -> None:
    """What quota ends with where none answers is what it ends with where there are no quotas."""
    program = runpy.run_path(str(ROOT / "roles/quotas/files/show-quotas"))
    assert program["silent_servers"](MOUNTS) == ["/home of 10.0.0.5", "/data of [fd00::5]"]


def test_limits_that_are_declared_no_more_are_taken_away() -> None:
    ten = Limits(hard=10)
    known = table.together({}, {"/work": {("user", "alice"): ten, ("group", "ml"): ten}})
    assert known == {"/work": [["group", "ml"], ["user", "alice"]]}
    now = {"/work": {("user", "alice"): ten}, "/scratch": {}}
    assert table.with_former(now, known)["/work"] == {
        ("user", "alice"): ten,
        ("group", "ml"): Limits(),
    }
    assert table.with_former(now, {}) == now
    # Who is declared no more, and whose account is there, keeps what everybody has.
    known["/work"] += [["user", "bob"], ["user", "gone"]]
    filesystems = [{"path": "/work", "each_user": {"space": "100K"}}, {"path": "/scratch"}]
    each = table.of_former_accounts(filesystems, known, {"bob"})
    assert table.with_former(now, known, each)["/work"] == {
        ("user", "alice"): ten,
        ("group", "ml"): Limits(),
        ("user", "bob"): Limits(hard=100),
        ("user", "gone"): Limits(),
    }
    assert table.together({"/old": [["user", "bob"]]}, now)["/old"] == [["user", "bob"]]


REPQUOTA = f"""\
#!/bin/sh
echo {REPORT.splitlines()[0]}
# Names are of getpwent alone, and a directory does not list its people; who has no file is left out.
case "$*" in *--no-cache*) name=lena ;; *) name='#20005' ;; esac
echo "$name,ok,ok,20,0,10,0,2,0,0,0"
case "$*" in *--verbose*) echo eve,ok,ok,0,0,30,0,0,0,0,0 ;; esac
"""


def test_people_of_a_directory_and_those_without_files_are_in_the_report(tmp_path: Path) -> None:
    program = tmp_path / "repquota"
    program.write_text(REPQUOTA)
    program.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/bin:/usr/bin"}
    command = [str(program), *table.report_command("user", "/home")[1:]]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert table.reported("user", said) == {
        ("user", "lena"): Limits(hard=10),
        ("user", "eve"): Limits(hard=30),
    }
    shows = [sys.executable, str(ROOT / "roles/quotas/files/show-quotas"), "--limits"]
    said = subprocess.run(shows, env=path, capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[:2] == ["user eve 0 30 0 0", "user lena 0 10 0 0"]


def test_systemd_is_kept_from_turning_on_what_the_mount_turns_on() -> None:
    """The line as it is typed, on a path that systemd writes in its own way."""
    line = r"\(systemctl mask quotaon\.service (\$\(.*?\))\)"
    (command,) = re.findall(line, table.how_to_turn_on("/srv/my homes"))
    told = subprocess.run(["sh", "-c", f"echo {command}"], capture_output=True, text=True, check=True)
    assert told.stdout == "quotaon@srv-my\\x20homes.service\n"
