"""The site's secrets, as files of variables for a playbook."""

from pathlib import Path

from deploy.engine.run import Run
from deploy.errors import error, shown_path
from deploy.site.node_lists import fold
from deploy.site.power_saving import is_cloud
from deploy.site.secrets import (
    fill_secrets,
    generated_names,
    missing_secrets,
    read_secrets,
    secrets_file,
)
from deploy.site.values import suggestion


def completed_secrets(run: Run) -> tuple[Path, ...]:
    """The file that holds the site's secrets, after what was missing there, or is renewed, was made."""
    path, rotation = secrets_file(run.site), run.options.rotation
    fill_secrets(run.site, run.options.vault_password_file, renewed=rotation.pending)
    rotation.is_done = True
    return (path,) if path.exists() else ()


def borrowed_secrets(run: Run) -> tuple[Path, ...]:
    """The site's secrets; what is missing there, or renewed, is made up, and forgotten with this run."""
    path, borrowed = secrets_file(run.site), run.place / "secrets.yml"
    fill_secrets(run.site, run.options.vault_password_file, borrowed, run.options.rotation.pending)
    return tuple(file for file in (path, borrowed) if file.exists())


def refuse_rotation_of_others(run: Run) -> None:
    """Raises DeployError where a secret that is to be renewed is none that deploy makes and keeps."""
    site, path = run.site, secrets_file(run.site)
    kept = read_secrets(path, run.options.vault_password_file) if run.options.rotation.names else {}
    known = generated_names(site)
    for name in run.options.rotation.names:
        if name not in known:
            raise error(
                "no-such-secret",
                f"{name!r} is no secret that deploy makes",
                where="--rotate",
                hint=f"{suggestion(name, dict.fromkeys(known))}; all of them: {', '.join(known)}",
            )
        place = next((host.where(name) for host in site.cluster if name in host.variables), "")
        if not place and "{{" in str(kept.get(name, "")):
            place = shown_path(path)
        if place:
            raise error(
                "secret-of-the-site",
                f"{name} is not kept by deploy: the site says here what it is",
                where=place,
                hint=f"write another one there, then: {run.command('cluster')} --new-secrets",
            )


def refuse_new_secrets_for_some(run: Run) -> None:
    """Raises DeployError ``new-secrets-limited``: hosts with different keys are no cluster."""
    options = run.options
    missing = missing_secrets(run.site, options.vault_password_file, options.rotation.pending)
    if missing and options.new_secrets and options.limit:
        raise error(
            "new-secrets-limited",
            f"{', '.join(missing)} would be made anew for some hosts only, and no other would know it",
            where=shown_path(secrets_file(run.site)),
            hint=f"{run.again('')}   (without --limit)",
        )
    off = sorted(name for name in run.away if not is_cloud(run.site.resolved.hosts[name]))
    if missing and options.new_secrets and off:
        raise error(
            "new-secrets-limited",
            f"{', '.join(missing)} would be made anew while {fold(off)} cannot be reached: Slurm has "
            "switched it off, and would not let it in again",
            where=shown_path(secrets_file(run.site)),
            hint=f"scontrol update nodename={fold(off)} state=power_up   (on {run.site.controller.name}); "
            f"then {run.again()}",
        )
