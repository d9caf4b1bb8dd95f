"""What was added to a host, and how its files are made to fit another lab."""

import io
import json
import tarfile
from typing import Any

from tests.bench.state import added, managed_files, parse_state, readdressed, rewritten

BEFORE = """\
bash:amd64 installed
---
root:x:0:
---
root:x:0:0:root:/root:/bin/bash
---
ssh.service loaded active running OpenBSD Secure Shell server
"""
AFTER = """\
bash:amd64 installed
munge:amd64 installed
exim4:amd64 config-files
---
root:x:0:
munge:x:105:
slurm:x:64030:
alice:x:2001:
---
root:x:0:0:root:/root:/bin/bash
munge:x:104:105::/nonexistent:/usr/sbin/nologin
slurm:x:64030:64030::/nonexistent:/usr/sbin/nologin
alice:x:2001:2001::/home/alice:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
---
munge.service loaded active running MUNGE authentication service
ssh.service loaded active running OpenBSD Secure Shell server
user@990.service loaded active running User Manager for UID 990
"""


def archive(**files: str) -> bytes:
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.uname = len(text), 0o400, "munge"
            tar.addfile(member, io.BytesIO(text.encode()))
        directory = tarfile.TarInfo("spool")
        directory.type = tarfile.DIRTYPE
        tar.addfile(directory)
    return result.getvalue()


def test_accounts_of_packages_and_services_of_sessions_do_not_count() -> None:
    installed = added(parse_state(BEFORE), parse_state(AFTER), b"")
    assert installed.packages == ("munge:amd64",)
    assert installed.groups == ("slurm 64030", "alice 2001")
    assert [line.split(":")[0] for line in installed.users] == ["slurm", "alice"]
    assert installed.services == ("munge.service",)


def test_managed_files_are_those_that_the_records_of_a_host_name() -> None:
    base = {"managed": {"files": {"/etc/hosts": {}, "/etc/chrony": {}}, "packages": {"chrony": "4"}}}
    compute: dict[str, Any] = {"managed": {"files": {"/etc/hosts": {}, "/etc/default/slurmd": None}}}
    records = json.dumps(base) + json.dumps(compute) + json.dumps({"managed": {}})
    assert managed_files(records) == ["/etc/chrony", "/etc/default/slurmd", "/etc/hosts"]


def test_an_archive_gets_the_other_labs_addresses_and_keeps_the_rest() -> None:
    change = readdressed({"ctl1": "10.213.4.2"}, {"ctl1": "10.213.77.2"})
    before = archive(hosts="10.213.4.2 ctl1\n10.213.4.[11-12] node[1-2]\n110.213.4.2 10.213.45.2\n", key="x")
    with tarfile.open(fileobj=io.BytesIO(rewritten(before, change))) as tar:
        content = tar.extractfile("hosts")
        assert content
        assert content.read() == b"10.213.77.2 ctl1\n10.213.77.[11-12] node[1-2]\n110.213.4.2 10.213.45.2\n"
        assert (tar.getmember("key").mode, tar.getmember("key").uname) == (0o400, "munge")
        assert tar.getmember("spool").isdir()
