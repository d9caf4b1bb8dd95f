"""Stands in for NVIDIA's exporter: takes its arguments, reads its list of fields, tells each for one GPU."""

import argparse
import csv
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--collectors", type=Path, default=Path("/etc/dcgm-exporter/default-counters.csv"))
parser.add_argument("--address", default=":9400")
parser.add_argument("--collect-interval", type=int, default=30000)
parser.add_argument("--remote-hostengine-info", default="localhost:5555")
parser.add_argument("--hpc-job-mapping-dir", type=Path)
options = parser.parse_args()

rows = [
    [word.strip(" ") for word in row]
    for row in csv.reader(line for line in options.collectors.open() if not line.startswith("#"))
    if row
]
for name, kind, _meaning in rows:
    if not re.fullmatch(r"DCGM_(FI|EXP)_\w+", name) or kind not in {"gauge", "counter", "label"}:
        raise SystemExit(name)


def text() -> str:
    """What is told."""
    place = options.hpc_job_mapping_dir / "0" if options.hpc_job_mapping_dir else None
    labels = {"gpu": "0"} | {name: "stand-in" for name, kind, _ in rows if kind == "label"}
    labels |= {"hpc_job": place.read_text().strip()} if place and place.exists() else {}
    shown = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return "".join(f"{name}{{{shown}}} 1\n" for name, kind, _ in rows if kind != "label")


class Handler(BaseHTTPRequestHandler):
    """Answers every question with the numbers."""

    def do_GET(self) -> None:
        """Tells."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text().encode())


host, _, port = options.address.rpartition(":")
HTTPServer((host.strip("[]"), int(port)), Handler).serve_forever()
