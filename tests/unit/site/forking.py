"""Answers what listing.py answers, many times: Ansible is imported once, and every answer is a fork.

forking.py LISTING      a JSON string per line in, its input,
                         {"stdout", "stderr"} per line out
"""

import importlib.util
import io
import json
import os
import sys
import tempfile
from pathlib import Path


def main() -> None:
    spec = importlib.util.spec_from_file_location("listing", sys.argv[1])
    assert spec
    assert spec.loader
    listing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(listing)
    with tempfile.TemporaryDirectory() as directory:
        # Reading one imports the plugins that read inventories, too.
        inventory = Path(directory, "inventory.ini")
        inventory.write_text("one\n")
        Path(directory, "group_vars").mkdir()
        Path(directory, "group_vars", "all.yml").write_text("site_a: 1\n")
        listing.listing(str(inventory), directory, "", "", lambda: None)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            child = os.fork()
            if child == 0:
                os.dup2(stdout.fileno(), 1)
                os.dup2(stderr.fileno(), 2)
                sys.stdin = io.StringIO(json.loads(line))
                listing.main()
            os.waitpid(child, 0)
            texts = []
            for file in (stdout, stderr):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        answer = {"stdout": texts[0], "stderr": texts[1]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
