"""``deploy bundle``: everything a site fetches, in a directory."""

import platform
from pathlib import Path
from typing import Annotated

import typer

from deploy.bundle.built_slurm import needs_of_built
from deploy.bundle.contents import contents_of
from deploy.bundle.make import VARIABLES, Release, make_bundle
from deploy.cli.parameters import ExtraVariables, Inventory, VaultPasswordFile
from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.errors import error, shown_path
from deploy.site.hardware import read_contract

_MEGABYTE = 1_000_000
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def bundle(
    inventory: Inventory,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to; what is there is brought up to date.")
    ],
    *,
    release: Annotated[
        list[Release] | None, typer.Option(help="The hosts' release; may be repeated.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the hosts will see DIR; default: file://DIR.")
    ] = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Fetch everything that a site needs into a directory, for hosts without any other network.

    Packages of the distribution with all they depend on, checked against its signatures and signed anew, and
    every file that roles fetch, checked against its checksum. Serve the directory with any web server, or
    mount it on all hosts; DIR/variables.json tells deploy where. Needs a Debian machine; changes no host.

    Examples:
      deploy bundle inventory.ini /srv/bundle --release trixie --url http://10.0.0.5:8000
      deploy cluster inventory.ini -e @/srv/bundle/variables.json

    """
    if url is not None and not url.startswith(("http://", "https://", "file:///")):
        raise error(
            "invalid-option",
            f"{url!r} is not an address of a web server or a directory",
            where="--url",
            hint="--url http://10.0.0.5:8000",
        )
    options = Options(extra=tuple(extra or ()), vault_password_file=vault_password_file)
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    with opened(inventory, options, needs_ansible=False) as run:
        contents = contents_of(
            run.site, read_contract(run.site), needs_of_built(run.site), architecture=architecture
        )
    made = make_bundle(
        directory,
        contents,
        releases=release or [Release.TRIXIE],
        architecture=architecture,
        url=url or directory.resolve().as_uri(),
        say=lambda line: typer.echo(line, err=True),
    )
    typer.echo(
        f"{made.packages} packages and {made.files} files, {made.size / _MEGABYTE:.0f} MB, in {directory}"
    )
    for line in made.left_out:
        typer.echo(f"not in it: {line}")
    typer.echo(f"its key is new: who keeps {VARIABLES} in group_vars copies it there again")
    typer.echo(f"next: deploy cluster {shown_path(inventory)} -e @{directory / VARIABLES}")
