"""Slurm's test suite from Debian's source package, on the controller of a lab, run by a user with sudo.

Each file of tests is run by itself. The suite's own programs for that lose what they know when they are
interrupted, wait for ever for a test that hangs, and fall over one that ends without a word; and within one
session pytest's part asks after each test for the jobs of all before, of which Slurm forgets old ones.
"""

import re
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.cluster.lab_cluster import Cluster
from tests.slurm_testsuite.outcomes import FAILED, Outcome, of_expect, of_pytest
from tests.slurm_testsuite.results import Run

USER = "alice"
HOST = "ctl1"
PLACE = "/home/slurm-testsuite"
"""In the storage that all machines of a lab share: what the suite's jobs write, it reads."""
_PACKAGES = (
    "expect python3-pytest python3-requests python3-pexpect sudo gcc libc6-dev make libslurm-dev "
    "libmunge-dev bc bzip2 xz-utils"
)
# The mirrors that the machine has, asked for sources as well.
_SOURCES = r"""
set -eu
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$file" ] || continue
    sed -n 's/^deb /deb-src /p' "$file"
done > /etc/apt/sources.list.d/slurm-testsuite.list
for file in /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] || continue
    sed 's/^Types:.*/Types: deb-src/' "$file"
    echo
done > /etc/apt/sources.list.d/slurm-testsuite.sources
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends {packages} >/dev/null
"""
# apt compares what it fetches with the checksums of the signed index.
_FETCH = r"""
set -eu
mkdir -p {place}/tmp && cd {place}
version=$(dpkg-query --show --showformat='${{source:Version}}' slurmctld)
apt-get source -qq --download-only --tar-only -o APT::Sandbox::User=root "slurm-wlm=$version" >&2
tar --extract --file slurm-wlm_*.orig.tar.* --strip-components=1 --no-same-owner
rm -f slurm-wlm_*
cat > testsuite/testsuite.conf <<END
SlurmSourceDir={place}
SlurmBuildDir={place}
SlurmInstallDir=/usr
SlurmConfigDir=/etc/slurm
END
chown -R {user}: {place}
# Tests compile programs: with headers that configure makes, and the library where Slurm's own build has it.
[ -e config.h ] || su {user} --command './configure --quiet --sysconfdir=/etc/slurm --disable-x11' >&2
ln --symbolic --force --no-target-directory /usr/lib/*-linux-gnu/slurm-wlm /usr/lib/slurm
echo '{user} ALL=(ALL:ALL) NOPASSWD: ALL' > /etc/sudoers.d/slurm-testsuite
chmod 0440 /etc/sudoers.d/slurm-testsuite
# The suite takes it for granted that Slurm's own user may submit jobs.
if [ -z "$(sacctmgr --noheader show user slurm format=user)" ]; then
    sacctmgr --immediate --quiet add user slurm account=research
fi
echo "$version"
"""
_MARK = "<<< slurm-testsuite >>>"
_LATE = (124, 137)
"""Exit codes of `timeout`: the test ended when it was told, and when it was killed."""
_RUN = """
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
log={place}/{stem}.log report={place}/{stem}.report
cd {place}/testsuite/{part} || exit
rm --force "$report"
# Tests of expect skip themselves at their beginning where no node is idle, as when others run beside them.
for _ in $(seq {limit}); do
    [ -z "$(sinfo --noheader --Node --states idle)" ] || break
    sleep 1
done
timeout --signal INT --kill-after 30 {limit} {command} > "$log" 2>&1 < /dev/null
code=$?
cat "$log"
echo '{mark}' "$code" '{mark}'
cat "$report" 2> /dev/null
echo '{mark}'
"""
_PYTEST = (
    "python3 -m pytest -q --local-config --no-color -p no:cacheprovider --tb=short"
    " --basetemp={place}/tmp/{stem} --junit-xml={place}/{stem}.report {file}"
)


@dataclass(frozen=True)
class Part:
    """One of the two, in the directory of its name."""

    files: str
    """What its files of tests are called, for a shell."""
    pattern: str
    """The same, whole: other files have names like theirs."""
    command: str
    read: Callable[[str, int, str, str], list[Outcome]]
    """The outcomes, of a file's stem, the exit code, the output and the report."""


def _of_python(stem: str, code: int, log: str, report: str) -> list[Outcome]:
    if report:
        return of_pytest(report)
    last = log.strip().splitlines()[-1:] or [""]
    return [Outcome(stem, FAILED, f"no report, exit code {code}: {last[0]}")]


def _of_expect(stem: str, code: int, log: str, _: str) -> list[Outcome]:
    return [of_expect(stem, code, log)]


PARTS: Mapping[str, Part] = {
    "python": Part("tests/test_*.py", r"tests/test_\d+_\d+\.py", _PYTEST, _of_python),
    "expect": Part("test*", r"test\d+\.\d+", "expect {file}", _of_expect),
}


FOR_ITSELF = {
    # They end all jobs of the user.
    ("python", "tests/test_103_2.py"),
    ("expect", "test6.10"),
    # It takes all nodes down, again and again.
    ("python", "tests/test_123_3.py"),
}
"""Files of tests beside which others fail."""


def prepare(cluster: Cluster) -> str:
    """Fetches the suite and what it needs; returns the version of the source package."""
    cluster.on(HOST, "sh", "-c", _SOURCES.format(packages=_PACKAGES), seconds=900)
    script = _FETCH.format(place=PLACE, user=USER)
    return cluster.on(HOST, "sh", "-c", script, seconds=600).strip().splitlines()[-1]


def files_of(cluster: Cluster, part: str, chosen: str = "") -> list[str]:
    """The files of tests of a part, or those that ``chosen`` names, as a shell reads it; by their numbers."""
    names = chosen or PARTS[part].files
    said = cluster.on(HOST, "bash", "-c", f"cd {PLACE}/testsuite/{part} && ls -1d {names}", expect=None)
    files = [file for file in said.split() if re.fullmatch(PARTS[part].pattern, file)]
    return sorted(files, key=lambda file: [int(number) for number in re.findall(r"\d+", file)])


def run_file(cluster: Cluster, part: str, file: str, *, alone: bool, limit: int) -> tuple[Run, str]:
    """Runs the tests of a file, for at most ``limit`` seconds; returns what came of them, and the output."""
    stem = PurePosixPath(file).stem if part == "python" else file
    command = PARTS[part].command.format(place=PLACE, stem=stem, file=shlex.quote(file))
    script = _RUN.format(place=PLACE, stem=stem, part=part, limit=limit, command=command, mark=_MARK)
    begun = time.monotonic()
    said = cluster.as_user(script, user=USER, host=HOST, expect=None, seconds=limit + 120)
    seconds = round(time.monotonic() - begun, 1)
    assert said.count(_MARK) == 3, f"{cluster.name} did not run {file}: {said[-1000:]}"
    log, code, report, _ = said.split(_MARK)
    outcomes = PARTS[part].read(stem, int(code), log, report.strip())
    if int(code) in _LATE:
        late = Outcome(stem, FAILED, f"it had not ended after {limit} seconds")
        outcomes = [*(outcome for outcome in outcomes if outcome.name != stem), late]
    return Run(part, file, alone, seconds, tuple(outcomes)), log
