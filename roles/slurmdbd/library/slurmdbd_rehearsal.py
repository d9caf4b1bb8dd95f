#!/usr/bin/python
"""Ansible module: a dump of the accounting database, converted by another release's slurmdbd."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.module_utils.basic import AnsibleModule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DOCUMENTATION = r"""
module: slurmdbd_rehearsal
short_description: A dump of the accounting database, converted by another release's slurmdbd
description:
  - Dumps the database while it is in use, fills a throwaway MariaDB with it, and has the slurmdbd of another
    release, which is unpacked below C(root), start on that. Both run as slurm, on a socket in a directory of
    theirs, without a network. Jobs, associations and usage are counted before and after.
  - Fails where there is no room, where slurmdbd does not come up, and where a count differs. Whatever
    happens, nothing is left of it.
options:
  root:
    description: Where the packages of the other release are unpacked.
    type: path
    required: true
  database:
    description: The database.
    type: str
    required: true
  directory:
    description: Where it takes place; made, and removed.
    type: path
    required: true
  timeout:
    description: Seconds that the conversion may take.
    type: int
    default: 3600
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_answer:
  description: >-
    C(seconds) of the conversion, C(bytes) that the converted database takes, C(needed) bytes of room for dump
    and both databases, and C(counts) of rows.
  type: dict
  returned: always
"""

_PLUGINS = ("usr/lib/*/slurm-wlm", "usr/lib/*/slurm")
"""Of the distribution's packages, and of SchedMD's."""
_SHARE = 3.0
"""What dump, copy and conversion take at most, in sizes of the database."""
_LEAST = 512 << 20
"""MariaDB's own files."""
_LONGEST = "--max-allowed-packet=1G"
"""As long a row as the site's server may take; these programs' own defaults are shorter."""
_SIZE = """select coalesce(sum(data_length + index_length), 0)
 from information_schema.tables where table_schema = '{}'"""
_COUNTED = re.compile(r".+_(job_table|assoc_table|assoc_usage_(hour|day|month)_table)")
_STARTED = re.compile(r"slurmdbd version \S+ started")
_PAUSE = 0.2


def counting(tables: Sequence[str], until: dict[str, int]) -> dict[str, str]:
    """The question for each table that is counted.

    Of usage the sum, up to the latest row that there was: a slurmdbd that starts adds what is due since.
    """
    asked = {}
    for table in tables:
        if not _COUNTED.fullmatch(table):
            continue
        if "_usage_" in table:
            what = f"coalesce(sum(alloc_secs), 0) from `{table}` where time_start <= {until.get(table, 0)}"
        else:
            what = f"count(*) from `{table}`"
        asked[table] = f"select {what}"
    return asked


class Rehearsal:
    """One rehearsal, in a directory that is slurm's alone."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.place = Path(module.params["directory"])
        self.root = Path(module.params["root"])
        self.database = module.params["database"]
        self.socket = self.place / "run/mysqld.sock"

    def refuse_without_room(self) -> int:
        """The bytes that it takes at most; fails where there are fewer."""
        size = self._ask(
            _SIZE.format(self.database),
            is_own=False,
        )
        needed = int(float(size) * _SHARE) + _LEAST
        free = shutil.disk_usage(self.place).free
        if free < needed:
            self.module.fail_json(
                msg=f"no room to rehearse the conversion: {self.place} has {free >> 20} MiB free, and it "
                f"takes {needed >> 20} MiB"
            )
        return needed

    def fill(self) -> None:
        """A MariaDB with the database as it is now."""
        for name in ("data", "run"):
            (self.place / name).mkdir()
        dump = self.place / "dump.sql"
        self._must(["mariadb-dump", "--single-transaction", _LONGEST, f"--result-file={dump}", self.database])
        self._own()
        self._must(
            [
                "mariadb-install-db",
                "--no-defaults",
                "--user=slurm",
                f"--datadir={self.place}/data",
                "--skip-test-db",
            ]
        )
        self._start(
            "db",
            [
                *("mariadbd", "--no-defaults", f"--datadir={self.place}/data", f"--socket={self.socket}"),
                *("--skip-networking", "--skip-grant-tables", f"--pid-file={self.place}/run/pid"),
                *(
                    "--innodb-buffer-pool-size=512M",
                    "--innodb-lock-wait-timeout=900",
                    _LONGEST,
                ),
            ],
        )
        self._wait("db", 60, lambda: self._run(self._client("select 1"))[0] == 0)
        self._ask(f"create database `{self.database}`", database="")
        self._load(dump)
        dump.unlink()

    def counts(self, until: dict[str, int]) -> dict[str, int]:
        """By table its rows, or its usage in seconds of TRES."""
        found = {}
        tables = self._ask("show tables").split()
        for table in tables:
            if "_usage_" in table and _COUNTED.fullmatch(table) and table not in until:
                latest = self._ask(f"select coalesce(max(time_start), 0) from `{table}`")  # noqa: S608
                until[table] = int(latest)
        for table, question in counting(tables, until).items():
            found[table] = int(self._ask(question))
        return found

    def convert(self) -> float:
        """Seconds in which the other slurmdbd came up."""
        program = self.root / "usr/sbin/slurmdbd"
        if not program.exists():
            self.module.fail_json(msg=f"{program} is not there: the other release is not unpacked")
        settings = [
            *("AuthType=auth/munge", "DbdHost=localhost", "SlurmUser=slurm", "DebugLevel=info"),
            *("StorageType=accounting_storage/mysql", "StorageHost=localhost", "StorageUser=slurm"),
            *("StoragePass=none", f"StorageLoc={self.database}"),
            *(f"LogFile={self.place}/slurmdbd.log", f"PidFile={self.place}/slurmdbd.pid"),
        ]
        conf = self.place / "slurmdbd.conf"
        conf.write_text("\n".join([*settings, ""]), encoding="utf-8")
        conf.chmod(0o600)
        self._own()
        began = time.monotonic()
        binds = [f"--property=BindPaths={self.place}/run:/run/mysqld"]
        places = [path for place in _PLUGINS for path in self.root.glob(place)]
        binds += [f"--property=BindReadOnlyPaths={path}:/{path.relative_to(self.root)}" for path in places]
        libraries = ":".join(str(path.parent) for path in places)
        # slurmdbd looks for its file beside the one that this names.
        environment = [
            f"--setenv=SLURM_CONF={self.place}/slurm.conf",
            f"--setenv=LD_LIBRARY_PATH={libraries}",
        ]
        self._start("dbd", [str(program), "-D"], *binds, *environment)
        log = self.place / "slurmdbd.log"

        def is_up() -> bool:
            return log.exists() and bool(_STARTED.search(log.read_text(encoding="utf-8", errors="replace")))

        self._wait("dbd", self.module.params["timeout"], is_up, "; slurmdbd_start_timeout may be longer")
        return time.monotonic() - began

    def size(self) -> int:
        """Bytes of the converted database."""
        return sum(path.stat().st_size for path in (self.place / "data").rglob("*") if path.is_file())

    def end(self) -> None:
        """Stops both, and leaves nothing."""
        for name in ("dbd", "db"):
            self._run(["systemctl", "stop", self._unit(name)])
        shutil.rmtree(self.place, ignore_errors=True)

    def _unit(self, name: str) -> str:
        return f"deploy-rehearsal-{name}"

    def _start(self, name: str, command: list[str], *options: str) -> None:
        output = self.place / f"{name}.out"
        self._must(
            [
                *("systemd-run", "--quiet", "--collect", "--unit", self._unit(name)),
                *(
                    "--property=PrivateNetwork=yes",
                    "--property=User=slurm",
                    "--property=ProtectSystem=strict",
                ),
                *(
                    f"--property=ReadWritePaths={self.place}",
                    "--property=PrivateTmp=yes",
                    "--property=KillSignal=SIGKILL",
                ),
                *(f"--property=StandardOutput=file:{output}", f"--property=StandardError=file:{output}"),
                *options,
                *command,
            ]
        )

    def _wait(self, name: str, seconds: float, is_so: Callable[[], bool], more: str = "") -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            ended = self._run(["systemctl", "is-active", "--quiet", self._unit(name)])[0] != 0
            if (ended and not is_so()) or time.monotonic() > deadline:
                why = "it ended" if ended else f"it is not ready after {seconds:.0f} s{more}"
                self._fail(
                    f"{'slurmdbd of the wanted release' if name == 'dbd' else 'a throwaway MariaDB'}: {why}"
                )
            time.sleep(_PAUSE)

    def _fail(self, what: str) -> None:
        logs = [self.place / "slurmdbd.log", self.place / "dbd.out", self.place / "db.out"]
        text = "\n".join(log.read_text(encoding="utf-8", errors="replace") for log in logs if log.exists())
        said = re.findall(r"(?:fatal|error|ERROR).*", text)[-4:] or text.splitlines()[-3:]
        self.module.fail_json(
            msg="the database was not converted in the rehearsal, so nothing was changed: "
            f"{what}: {' | '.join(said)}"
        )

    def _own(self) -> None:
        self._must(["chown", "--recursive", "slurm:slurm", str(self.place)])

    def _client(self, question: str | None, database: str = "") -> list[str]:
        asked = ["--execute", question] if question else []
        return [
            "mariadb",
            "--no-defaults",
            "--skip-column-names",
            f"--socket={self.socket}",
            *asked,
            *filter(None, [database]),
        ]

    def _ask(self, question: str, *, is_own: bool = True, database: str | None = None) -> str:
        name = self.database if database is None else database
        own = self._client(question, name)
        return self._must(
            own if is_own else ["mariadb", "--skip-column-names", "--execute", question]
        ).strip()

    def _load(self, dump: Path) -> None:
        """By its file: what Ansible gives to a command is in memory, several times."""
        command = [*self._client(None), _LONGEST, self.database]
        with dump.open("rb") as text:
            done = subprocess.run(command, stdin=text, capture_output=True, check=False)
        if done.returncode != 0:
            self._fail(f"{command[0]}: {done.stderr.decode(errors='replace').strip()[-400:]}")

    def _run(self, command: list[str]) -> tuple[int, str]:
        code, out, err = self.module.run_command(command)
        return code, str(out) if code == 0 else str(err or out)

    def _must(self, command: list[str]) -> str:
        code, said = self._run(command)
        if code != 0:
            self._fail(f"{command[0]}: {said.strip()[-400:]}")
        return said


def main() -> None:
    """Dump, fill, count, convert, count."""
    arguments: dict[str, Any] = {
        "root": {"type": "path", "required": True},
        "database": {"type": "str", "required": True},
        "directory": {"type": "path", "required": True},
        "timeout": {"type": "int", "default": 3600},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    rehearsal = Rehearsal(module)
    # Of one that was cut off.
    rehearsal.end()
    rehearsal.place.mkdir(mode=0o700, parents=True)
    try:
        needed = rehearsal.refuse_without_room()
        rehearsal.fill()
        until: dict[str, int] = {}
        before = rehearsal.counts(until)
        seconds = rehearsal.convert()
        after = rehearsal.counts(until)
        size = rehearsal.size()
    finally:
        rehearsal.end()
    differing = [
        f"{table} {count} -> {after.get(table)}"
        for table, count in before.items()
        if after.get(table) != count
    ]
    if differing:
        module.fail_json(
            msg="the converted database does not hold what it held, so nothing was changed: "
            + ", ".join(differing)
        )
    answer = {"seconds": round(seconds, 1), "bytes": size, "needed": needed, "counts": before}
    module.exit_json(changed=False, deploy_answer=answer)


if __name__ == "__main__":
    main()
