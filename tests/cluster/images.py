"""Small images, made on a machine of the lab and pushed to a registry as any client does."""

import json

from tests.cluster.lab_cluster import Cluster

_PUSH = r"""
import base64, gzip, hashlib, io, json, ssl, subprocess, sys, tarfile, urllib.error, urllib.request
place, login, name, tag, words = sys.argv[1:]

def ask(method, path, data=None, kind="application/octet-stream"):
    url = path if path.startswith("http") else place + path
    request = urllib.request.Request(url, data=data, method=method)
    request.add_header("Content-Type", kind)
    if login:
        request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    context = ssl.create_default_context(cafile="/etc/slurm-registry/tls.crt") if "https" in place else None
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return answer.headers

def blob(content):
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    to = ask("POST", f"/v2/{name}/blobs/uploads/", b"")["Location"]
    ask("PUT", to + ("&" if "?" in to else "?") + "digest=" + digest, content)
    return {"digest": digest, "size": len(content)}

packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w") as tar:
    tar.add("/bin/busybox", "bin/busybox")
    programs = subprocess.run(["/bin/busybox", "--list"], stdout=subprocess.PIPE, text=True).stdout.split()
    for program in programs:
        link = tarfile.TarInfo("bin/" + program)
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        if program != "busybox":
            tar.addfile(link)
    for directory in ("etc", "tmp", "root", "proc", "sys", "dev", "run", "var"):
        made = tarfile.TarInfo(directory)
        made.type, made.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(made)
    said = f"NAME={words}\n".encode()
    file = tarfile.TarInfo("etc/os-release")
    file.size, file.mode = len(said), 0o644
    tar.addfile(file, io.BytesIO(said))
layer = gzip.compress(packed.getvalue(), mtime=0)
config = json.dumps({
    "architecture": "amd64", "os": "linux",
    "config": {"Env": ["PATH=/bin", "OF_THE_IMAGE=" + words], "Cmd": ["/bin/sh"]},
    "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(packed.getvalue()).hexdigest()]},
}).encode()
kind = "application/vnd.oci.image.manifest.v1+json"
manifest = {
    "schemaVersion": 2, "mediaType": kind,
    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **blob(config)},
    "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **blob(layer)}],
}
ask("PUT", f"/v2/{name}/manifests/{tag}", json.dumps(manifest).encode(), kind)
"""
_OTHER = """
set -e
cat >/etc/upstream.yml <<'END'
version: 0.1
storage: {filesystem: {rootdirectory: /srv/upstream}}
http: {addr: "127.0.0.1:5999"}
END
systemd-run --quiet --unit=upstream docker-registry serve /etc/upstream.yml
until curl --silent --fail http://127.0.0.1:5999/v2/ >/dev/null; do sleep 0.2; done
"""
OTHER = "http://127.0.0.1:5999"
"""A registry on the controller that stands in for those of the world."""


def start_other_registry(cluster: Cluster) -> None:
    """One without TLS and accounts, for what the controller's caches ask."""
    cluster.on("ctl1", "timeout", "60", "sh", "-c", _OTHER)


def push(cluster: Cluster, place: str, name: str, words: str, *, login: str = "") -> None:
    """An image of busybox that calls itself by these words; ``name`` is TEAM/IMAGE:TAG."""
    repository, _, tag = name.partition(":")
    cluster.on("ctl1", "python3", "-c", _PUSH, place, login, repository, tag, words)


def secret(cluster: Cluster, name: str) -> str:
    """One of the site's."""
    lines = (cluster.directory / "secrets.yml").read_text().splitlines()
    found = next(line.partition(": ")[2] for line in lines if line.startswith(f"{name}:"))
    return str(json.loads(found)) if found.startswith('"') else found.strip("'")
