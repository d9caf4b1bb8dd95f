"""Makes a wheel of a package that says its version: NAME VERSION DIRECTORY."""

import sys
import zipfile
from pathlib import Path

name, version, directory = sys.argv[1:]
info = f"{name}-{version}.dist-info"
files = {
    f"{name}.py": f"VERSION = {version!r}\n\ndef main():\n    print(VERSION)\n",
    f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
}
record = f"{info}/RECORD"
files[record] = "".join(f"{path},,\n" for path in [*files, record])
with zipfile.ZipFile(Path(directory) / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)
