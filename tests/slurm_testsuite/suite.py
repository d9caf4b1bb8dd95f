"""Slurm's test suite from Debian's source package, on the controller of a lab, run by a user with sudo."""

import shlex

from tests.cluster.lab_cluster import Cluster

USER = "alice"
HOST = "ctl1"
PLACE = "/home/slurm-testsuite"
"""In the storage that all machines of a lab share: what the suite's jobs write, it reads."""
_PACKAGES = (
    "expect python3-pytest python3-requests python3-pexpect sudo gcc libc6-dev make libslurm-dev bc bzip2 "
    "xz-utils"
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
mkdir -p {place} && cd {place}
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
echo '{user} ALL=(ALL:ALL) NOPASSWD: ALL' > /etc/sudoers.d/slurm-testsuite
chmod 0440 /etc/sudoers.d/slurm-testsuite
echo "$version"
"""
_RUN = "export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin; cd {place}/testsuite/{part} && {command}"
# File by file: a session asks after each test for the jobs of all before, and Slurm forgets old ones.
_PYTEST = (
    "rm -rf {place}/reports; : > {log}; for file in {chosen}; do "
    "python3 -m pytest -q --local-config --no-color -p no:cacheprovider --tb=line --basetemp={place}/tmp "
    "--junit-xml={place}/reports/$(basename $file).xml $file >> {log} 2>&1; done; "
    "(echo '<all>'; sed 's/<?xml[^>]*?>//' {place}/reports/*.xml; echo '</all>') > {report}"
)
_EXPECT = "python3 regression.py --time-individual --keep-logs --results-file={report} {chosen} > {log} 2>&1"


def prepare(cluster: Cluster) -> str:
    """Fetches the suite and what it needs; returns the version of the source package."""
    cluster.on(HOST, "sh", "-c", _SOURCES.format(packages=_PACKAGES), seconds=900)
    script = _FETCH.format(place=PLACE, user=USER)
    return cluster.on(HOST, "sh", "-c", script, seconds=600).strip().splitlines()[-1]


def run_python(cluster: Cluster, chosen: str = "tests/test_*.py", seconds: float = 7200) -> str:
    """Runs the part for pytest; returns its report."""
    return _run(cluster, "python", _PYTEST, chosen, seconds)


def run_expect(cluster: Cluster, chosen: str = "", seconds: float = 3 * 3600) -> str:
    """Runs the part for expect; returns its report."""
    return _run(cluster, "expect", _EXPECT, f"--include {shlex.quote(chosen)}" if chosen else "", seconds)


def _run(cluster: Cluster, part: str, command: str, chosen: str, seconds: float) -> str:
    report, log = f"{PLACE}/{part}.report", f"{PLACE}/{part}.log"
    script = _RUN.format(
        place=PLACE, part=part, command=command.format(place=PLACE, report=report, log=log, chosen=chosen)
    )
    # It fails where a test does; what that means, the report says.
    cluster.as_user(script, host=HOST, expect=None, seconds=seconds)
    return cluster.on(HOST, "sh", "-c", f"cat {report} || {{ tail --lines=20 {log} >&2; exit 1; }}")
