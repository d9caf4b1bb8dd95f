"""What the packages need that a site has built of Slurm: they travel with the site, not in a bundle."""

import re
import tarfile

from deploy.plan.slurm_source import BUILT_FOR, built_archive
from deploy.site.inventory import Site

_INDEX = "./Packages"
_OWN = "slurm-smd"


def needs_of_built(site: Site) -> frozenset[str] | None:
    """The packages of the distribution that they depend on; None where they were not built yet."""
    needs: set[str] = set()
    found = [path for release in BUILT_FOR if (path := built_archive(site, release)).is_file()]
    for path in found:
        with tarfile.open(path) as archive:
            file = archive.extractfile(_INDEX)
            needs |= needed(file.read().decode()) if file else set()
    return frozenset(needs) if found else None


def needed(index: str) -> set[str]:
    """What packages of an index depend on, of alternatives the first; not each other."""
    lines = re.findall(r"^(?:Pre-)?Depends: (.*(?:\n .*)*)", index, re.MULTILINE)
    clauses = (clause.strip() for line in lines for clause in line.split(","))
    names = {re.split(r"[ :|(]", clause, maxsplit=1)[0] for clause in clauses if clause}
    return {name for name in names if not name.startswith(_OWN)}
