"""Makes a container image of a few programs of this host, which names itself by a nonce.

Its arguments are the directory to make ``image.sqsh`` in, and the nonce.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_PROGRAMS = ("/bin/sh", "/bin/cat", "/bin/true")
_LIBRARY = re.compile(r"(/\S+) \(0x")


def main(directory: Path, nonce: str) -> None:
    """A root file system with those programs, what they load, and an os-release of its own, as squashfs."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "root")
        for name in ("etc", "proc", "sys", "dev", "tmp", "run", "bin", "usr", "root", "home"):
            (root / name).mkdir(parents=True)
        for program in _PROGRAMS:
            needs = _LIBRARY.findall(
                subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
            )
            for path in (program, *needs):
                copy = root / path.lstrip("/")
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
        (root / "etc" / "os-release").write_text(
            f'NAME="deploy validate"\nID=deploy\nNONCE={nonce}\n', encoding="utf-8"
        )
        (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="utf-8")
        (root / "etc" / "group").write_text("root:x:0:\n", encoding="utf-8")
        image = Path(place, "image.sqsh")
        subprocess.run(
            ["mksquashfs", str(root), str(image), "-quiet", "-no-progress", "-all-root"], check=True
        )
        shutil.copy(image, directory / "image.sqsh")


main(Path(sys.argv[1]), sys.argv[2])
