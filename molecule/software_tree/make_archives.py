"""Archives that stand in for Spack's release, which no registry has, and for a small program's source."""

import io
import sys
import tarfile
from pathlib import Path

_SPACK = b"""#!/bin/sh
echo "spack 1.0.2"
echo "for $(id -un)"
# As Spack writes its database: with the umask that it is started with.
if [ "$1" = reindex ]; then
    mkdir -p /srv/software/spack/installed/.spack-db
    id -un >> /srv/software/spack/installed/.spack-db/lock
fi
"""
_MAKEFILE = b"""all:
\tcc -o greet greet.c
install:
\tmkdir -p $(PREFIX)/bin
\tcp greet $(PREFIX)/bin
"""
_PROGRAM = b"""#include <stdio.h>
int main(void) { puts("built by EasyBuild"); return 0; }
"""


def archive(path: Path, files: dict[str, bytes]) -> None:
    """A tar archive whose files can be run."""
    with tarfile.open(path, "w:gz") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            made.addfile(member, io.BytesIO(content))


place = Path(sys.argv[1])
place.mkdir(parents=True)
archive(place / "spack.tar.gz", {"spack-1.0.2/bin/spack": _SPACK})
archive(place / "packages.tar.gz", {"packages-1/repos/spack_repo/builtin/repo.yaml": b"repo: {}\n"})
archive(place / "greet-1.0.tar.gz", {"greet-1.0/Makefile": _MAKEFILE, "greet-1.0/greet.c": _PROGRAM})
