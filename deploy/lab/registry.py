"""A registry inside a rehearsal: small images, made here, under the names that a site's users type.

The machines find it by those names in /etc/hosts and trust its authority. It is Debian's docker-registry on
one of the machines, so that no registry of the site's is asked.
"""

import hashlib
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.errors import ExitCode, error
from deploy.lab.apt_settings import read_options, read_sources
from deploy.lab.image import RECIPE_LABEL, label_of
from deploy.lab.locks import exclusive
from deploy.lab.machine import require_tools
from deploy.lab.parallel import for_each
from deploy.lab.pip_settings import pip_entries
from deploy.lab.podman import podman
from deploy.lab.recipe import RELEASES
from deploy.lab.tarball import Entry, pack
from deploy.place import private_place

_DOCKER_HUB = {"docker.io": "registry-1.docker.io"}
"""Where a program asks that is told the name of a registry."""
_AUTHORITY = "/usr/local/share/ca-certificates/rehearsal-registry.crt"
_PLACE = "/etc/docker/registry"
_CONFIGURATION = f"""\
version: 0.1
storage:
  filesystem:
    rootdirectory: /var/lib/docker-registry
http:
  addr: :443
  tls:
    certificate: {_PLACE}/server.crt
    key: {_PLACE}/server.key
"""
_UNIT = """\
[Service]
AmbientCapabilities=CAP_NET_BIND_SERVICE
"""
_INSTALL = """\
export DEBIAN_FRONTEND=noninteractive
apt-get -q update && apt-get -q install -y --no-install-recommends docker-registry openssl
"""
_START = f"""\
set -e
cd {_PLACE}
umask 077
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -keyout authority.key -out authority.crt \\
  -subj '/CN=Registry of a rehearsal' -addext basicConstraints=critical,CA:TRUE
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj '/CN=registry'
printf 'subjectAltName=%s' "$1" > names
openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 30 \\
  -extfile names -out server.crt
rm authority.key server.csr names
chown docker-registry server.key server.crt
chmod 755 . && chmod 644 authority.crt server.crt
systemctl daemon-reload
systemctl reset-failed docker-registry || true
systemctl restart docker-registry
for _ in $(seq 60); do
  ss --listening --tcp --numeric --no-header 'sport = :443' | grep -q . && exit 0
  sleep 0.5
done
systemctl status --no-pager docker-registry >&2
exit 1
"""
_TRUST = f"""\
set -e
mkdir -p {Path(_AUTHORITY).parent}
cat > {_AUTHORITY}
update-ca-certificates > /dev/null 2>&1
grep -qF "$1" /etc/hosts || printf '%s\\n' "$1" >> /etc/hosts
"""
_DROPPED = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
)
_CHANGES = """\
set -e
cd "$1/usr/lib"
# Libraries for GPUs of AMD, on which PyTorch's only depend, and PyTorch's own tests: a third of an image.
rm -rf */libLLVM* */libamd_comgr* */libamdhip64*
rm -rf libtorch-test python3/dist-packages/torch/bin/test_*
# As in the images that these take the place of, pip may install for everybody, also another version of what
# is there. That it refuses where no list says what to take away.
find . -name EXTERNALLY-MANAGED -delete
for metadata in python3/dist-packages/*.dist-info; do
  [ ! -d "$metadata" ] || [ -e "$metadata/RECORD" ] || : > "$metadata/RECORD"
done
# Debian's PyTorch is built without libuv, which its launchers ask for.
torch=python3/dist-packages/torch/distributed
if [ -d $torch ]; then
  sed -i 's/"USE_LIBUV", "1"/"USE_LIBUV", "0"/' $torch/rendezvous.py $torch/elastic/utils/distributed.py
  sed -i 's/is_master=False,/use_libuv=False, &/' $torch/rendezvous.py
  sed -i 's/multi_tenant=True,/use_libuv=False, &/' $torch/elastic/rendezvous/*.py
fi
"""
"""Of the system at ``$1``, once its packages are installed."""


@dataclass(frozen=True)
class ServedImage:
    """An image of Debian's packages that a rehearsal serves; ``name`` as in ``nvcr.io/nvidia/pytorch``."""

    name: str
    tags: tuple[str, ...]
    packages: tuple[str, ...]

    @property
    def registry(self) -> str:
        """The host that is asked for it."""
        host = self.name.partition("/")[0]
        return _DOCKER_HUB.get(host, host)

    @property
    def repository(self) -> str:
        """Its name there."""
        return self.name.partition("/")[2]


def served_images(listed: Iterable[Mapping[str, Any]]) -> list[ServedImage]:
    """The images that a file of commands has."""
    return [ServedImage(entry["image"], tuple(entry["tags"]), tuple(entry["packages"])) for entry in listed]


@dataclass(frozen=True)
class Registry:
    """The machine that is the registry, and all that ask it, by their containers."""

    container: str
    address: str
    clients: Sequence[str]

    def serve(self, images: Sequence[ServedImage], release: str, say: Callable[[str], None]) -> None:
        """Makes the images, and has the machines find them. Raises DeployError."""
        names = sorted({image.registry for image in images})
        say(f"registry for {', '.join(names)} ...")
        made = {image.name: ensure_image(image, release) for image in images}
        self._start(names)
        for image in images:
            for tag in image.tags:
                target = f"docker://{self.address}:443/{image.repository}:{tag}"
                # Enroot asks for an index first, and this registry hides manifests of OCI's from who does.
                podman("push", "--quiet", "--format=v2s2", "--tls-verify=false", made[image.name], target)

    def _start(self, names: Sequence[str]) -> None:
        entries = [
            Entry("/etc/docker", mode=0o755),
            Entry(_PLACE, mode=0o755),
            Entry(f"{_PLACE}/config.yml", _CONFIGURATION),
            Entry("/etc/systemd/system/docker-registry.service.d", mode=0o755),
            Entry("/etc/systemd/system/docker-registry.service.d/port.conf", _UNIT),
        ]
        podman("exec", self.container, "sh", "-c", _INSTALL)
        podman("exec", "--interactive", self.container, "tar", "-x", "-C", "/", data=pack(entries))
        alternatives = ",".join(f"DNS:{name}" for name in names)
        podman("exec", self.container, "sh", "-c", _START, "sh", alternatives)
        authority = podman("exec", self.container, "cat", f"{_PLACE}/authority.crt").encode() + b"\n"
        line = f"{self.address} {' '.join(names)}"
        for_each(
            list(self.clients),
            lambda client: podman(
                "exec", "--interactive", client, "sh", "-c", _TRUST, "sh", line, data=authority
            ),
        )


def ensure_image(image: ServedImage, release: str) -> str:
    """The podman image of one, made unless there is one of the same recipe; returns its name."""
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=apt",
        f"--include={','.join(sorted({'ca-certificates', *image.packages}))}",
        *(f"--aptopt={line}" for line in read_options()),
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt={line}" for line in ("force-unsafe-io", *_DROPPED)),
        f"--customize-hook={_CHANGES}",
    ]
    sources = read_sources(release, RELEASES[release])
    extra = pack(pip_entries())
    recipe = hashlib.sha256("\0".join([*command, release, *sources]).encode() + extra).hexdigest()[:16]
    name = f"localhost/deploy-rehearsed/{image.repository.replace('/', '-')}:{release}"
    with exclusive(f"image-{image.repository.replace('/', '-')}"):
        if label_of(name, RECIPE_LABEL) != recipe:
            _build([*command], [release], sources, extra=extra, name=name, recipe=recipe)
    return name


def _build(
    command: list[str], release: list[str], sources: Sequence[str], *, extra: bytes, name: str, recipe: str
) -> None:
    require_tools(("mmdebstrap",))
    with private_place("lab", Path("/var/tmp")) as scratch:  # noqa: S108 - made private
        files, system = Path(scratch, "files.tar"), Path(scratch, "system.tar")
        files.write_bytes(extra)
        built = subprocess.run(
            [*command, f"--customize-hook=tar-in {files} /", *release, str(system), *sources],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if built.returncode:
            reasons = [line for line in built.stderr.splitlines() if line.startswith(("E:", "Err"))]
            raise error(
                "lab-image-failed",
                f"mmdebstrap could not build the image for {name}: {(reasons or ['no reason given'])[0]}",
                hint="check that apt-get update works here; images are of the same mirror",
                exit_code=ExitCode.FAILED,
            )
        changes = ('CMD ["/bin/bash"]', f"LABEL {RECIPE_LABEL}={recipe}")
        podman("import", *(f"--change={change}" for change in changes), str(system), name)
