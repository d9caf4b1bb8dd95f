"""The image that lab machines boot from: built here, from this machine's own package mirror."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from deploy.errors import ExitCode, error
from deploy.lab.apt_settings import read_options, read_sources
from deploy.lab.locks import exclusive
from deploy.lab.machine import Machine, require_tools
from deploy.lab.podman import podman, query, succeeds
from deploy.lab.recipe import IMPORT_CHANGES, RELEASES, Recipe, overlay_entries
from deploy.place import place_on_disk, private_place

RECIPE_LABEL = "deploy.recipe"
"""Where an image says of which recipe it was made."""

# systemd 257 boots on cgroup v1 only when told twice; older ones take it as a matter of course.
_CGROUP_V1_ARGUMENTS = ("systemd.unified_cgroup_hierarchy=0", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1")
# A privileged container sees the host's console, for which all of them would compete.
_NO_CONSOLE = "systemd.mask=getty@tty1.service"
_TEMPORARY = ("/run", "/run/lock", "/tmp")  # noqa: S108 - directories of the container


def image_name(release: str) -> str:
    """The name of the node image of a release (or of a foreign image)."""
    return f"localhost/deploy-lab:{re.sub(r'[^a-z0-9_.-]+', '-', release.lower()).strip('-.')}"


def system_options(machine: Machine) -> list[str]:
    """The podman options with which a container's systemd boots and finds its own cgroups alone."""
    if not machine.cgroup_v1:
        return ["--privileged", "--systemd=always"]
    # What podman does for systemd on cgroup v1 shows a container the tree of its host, where the systemd of
    # one would clear away the cgroups of another. In a namespace of its own it needs no such help.
    temporary = [f"--tmpfs={place}" for place in _TEMPORARY]
    return ["--privileged", "--systemd=false", "--cgroupns=private", "--env=container=podman", *temporary]


def start_command(machine: Machine) -> list[str]:
    """What a container of the image has to run to boot on this machine."""
    return ["/sbin/init", _NO_CONSOLE, *(_CGROUP_V1_ARGUMENTS if machine.cgroup_v1 else ())]


def ensure_image(release: str) -> str:
    """Build the node image unless the one that exists was made from the same recipe; returns its name.

    A release that is not known is taken as a container image of the Debian family, to which the missing
    packages are added.
    """
    archive = RELEASES.get(release)
    recipe = Recipe(
        release=release,
        sources=tuple(read_sources(release, archive)) if archive else (),
        apt_options=tuple(read_options()) if archive else (),
        files=tuple(overlay_entries(release)),
    )
    name = image_name(release)
    _ensure(recipe, name, _import if archive else _extend)
    return name


def ensure_programs(recipe: Recipe, name: str) -> None:
    """Make an image of programs that are no system, unless there is one of the same recipe."""
    _ensure(recipe, name, _import)


def _ensure(recipe: Recipe, name: str, build: Callable[[Recipe, str], None]) -> None:
    with exclusive(f"image-{name.rpartition(':')[2]}"):
        if label_of(name, RECIPE_LABEL) != recipe.digest:
            build(recipe, name)
            drop_old_images()


def drop_old_images() -> None:
    """Remove images that a newer one has replaced; one that a lab still runs from stays."""
    succeeds("image", "prune", "--force", "--filter", f"label={RECIPE_LABEL}")


def label_of(image: str, label: str) -> str | None:
    """The value of an image's label; None when it has no such label, or there is no such image."""
    if not succeeds("image", "exists", image):
        return None
    labels: dict[str, str] = query("image", "inspect", image)[0].get("Labels") or {}
    return labels.get(label)


def _import(recipe: Recipe, name: str) -> None:
    # /tmp may live in memory; a whole system belongs on disk.
    with private_place("lab", Path("/var/tmp")) as scratch:  # noqa: S108 - made private
        overlay, system = Path(scratch, "overlay.tar"), Path(scratch, "system.tar")
        overlay.write_bytes(recipe.overlay)
        bootstrap(recipe, overlay, system)
        changes = (*(IMPORT_CHANGES if recipe.installs else ()), f"LABEL {RECIPE_LABEL}={recipe.digest}")
        podman("import", *(f"--change={change}" for change in changes), str(system), name)


def bootstrap(recipe: Recipe, overlay: Path, output: Path) -> None:
    """Build what the recipe says, as a directory or an archive. Raises DeployError ``lab-image-failed``."""
    require_tools(("mmdebstrap",))
    built = subprocess.run(
        recipe.bootstrap_command(str(overlay), str(output)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if built.returncode != 0:
        reasons = [line for line in built.stderr.splitlines() if line.startswith(("E:", "Err"))]
        raise error(
            "lab-image-failed",
            f"mmdebstrap could not build {recipe.release}:"
            f" {(reasons or built.stderr.strip().splitlines() or ['no reason given'])[0]}",
            hint="check that apt-get update works here; the lab fetches from the same mirror",
            exit_code=ExitCode.FAILED,
        )


def _extend(recipe: Recipe, name: str) -> None:
    with place_on_disk("lab") as scratch:
        Path(scratch, "overlay.tar").write_bytes(recipe.overlay)
        labelled = f"{recipe.containerfile()}LABEL {RECIPE_LABEL}={recipe.digest}\n"
        Path(scratch, "Containerfile").write_text(labelled + "\n".join(IMPORT_CHANGES) + "\n")
        podman("build", "--tag", name, str(scratch))
