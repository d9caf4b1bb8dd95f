import io
import tarfile
from pathlib import Path

from deploy.bundle.built_slurm import needed, needs_of_built
from deploy.bundle.contents import contents_of
from deploy.plan.slurm_source import built_archive
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

BUILT = (
    "slurm_packages_source: schedmd\nslurm_packages_version: '26.05'\n"
    f"slurm_packages_tarball: {{url: https://mirror.site/slurm.tar.bz2, sha256: {'a' * 64}}}\n"
)
INDEX = """\
Package: slurm-smd
Depends: libc6 (>= 2.38), libhwloc15 | libhwloc16, munge
Description: it Depends: on nothing

Package: slurm-smd-client
Pre-Depends: dpkg
Depends: slurm-smd (= 26.05.3-1),
 bash-completion, perl:any
"""


def test_what_packages_need_besides_each_other() -> None:
    assert needed(INDEX) == {"libc6", "libhwloc15", "munge", "bash-completion", "perl", "dpkg"}


def test_a_bundle_has_what_built_packages_need(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, files={"group_vars/all.yml": BUILT}))
    place = built_archive(site, "Debian-13")
    place.parent.mkdir(parents=True)
    with tarfile.open(place, "w") as archive:
        member = tarfile.TarInfo("./Packages")
        member.size = len(INDEX)
        archive.addfile(member, io.BytesIO(INDEX.encode()))
    found = contents_of(site, {}, needs_of_built(site))
    assert all({"libhwloc15", "munge"} <= names for names in found.packages)
    assert not any("slurm.tar.bz2" in line or "not built" in line for line in found.left_out)


def test_a_bundle_says_that_they_are_not_built(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, files={"group_vars/all.yml": BUILT}))
    found = contents_of(site, {}, needs_of_built(site))
    assert [line for line in found.left_out if line.startswith("Slurm's packages, which are not built yet")]
