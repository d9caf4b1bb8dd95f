"""Makes a wheel of a package that says its version: NAME VERSION DIRECTORY.

Its code also runs when Python starts, and leaves a file that says as whom. Beside it lies ``NAME-source``, a
package that is no wheel, whose setup code does the same.
"""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

LEAVES_A_TRACE = "import os; open(f'/var/tmp/ran-as-{os.geteuid()}', 'a').close()\n"

name, version, directory = sys.argv[1:]
info = f"{name}-{version}.dist-info"
files = {
    f"{name}.py": f"VERSION = {version!r}\n\ndef main():\n    print(VERSION)\n",
    f"{name}.pth": LEAVES_A_TRACE,
    f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
}
record = f"{info}/RECORD"
files[record] = "".join(f"{path},,\n" for path in [*files, record])
with zipfile.ZipFile(Path(directory) / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)

source = f"{name}-source-{version}"
setup = f"setup(name='{name}-source', version='{version}')"
files = {
    "setup.py": f"{LEAVES_A_TRACE}from setuptools import setup\n{setup}\n",
    "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}-source\nVersion: {version}\n",
}
with tarfile.open(Path(directory) / f"{source}.tar.gz", "w:gz") as archive:
    for path, text in files.items():
        member = tarfile.TarInfo(f"{source}/{path}")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
