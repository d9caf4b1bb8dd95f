"""The site's secrets, as files of variables for a playbook."""

from pathlib import Path

from deploy.engine.run import Run
from deploy.errors import error, shown_path
from deploy.site.node_lists import fold
from deploy.site.power_saving import is_cloud
from deploy.site.secrets import fill_secrets, missing_secrets, secrets_file


def completed_secrets(run: Run) -> tuple[Path, ...]:
    """The file that holds the site's secrets, after what was missing there was made."""
    path = secrets_file(run.site)
    fill_secrets(run.site, run.options.vault_password_file)
    return (path,) if path.exists() else ()


def borrowed_secrets(run: Run) -> tuple[Path, ...]:
    """The site's secrets; what is missing there is made up, and forgotten with this run."""
    path, borrowed = secrets_file(run.site), run.place / "secrets.yml"
    fill_secrets(run.site, run.options.vault_password_file, borrowed)
    return tuple(file for file in (borrowed, path) if file.exists())


def refuse_new_secrets_for_some(run: Run) -> None:
    """Raises DeployError ``new-secrets-limited``: hosts with different keys are no cluster."""
    options = run.options
    missing = missing_secrets(run.site, options.vault_password_file)
    if missing and options.new_secrets and options.limit:
        raise error(
            "new-secrets-limited",
            f"{', '.join(missing)} would be made anew for some hosts only, and no other would know it",
            where=shown_path(secrets_file(run.site)),
            hint=f"deploy cluster {run.inventory} --new-secrets   (without --limit)",
        )
    off = sorted(name for name in run.away if not is_cloud(run.site.resolved.hosts[name]))
    if missing and options.new_secrets and off:
        raise error(
            "new-secrets-limited",
            f"{', '.join(missing)} would be made anew while {fold(off)} cannot be reached: Slurm has "
            "switched it off, and would not let it in again",
            where=shown_path(secrets_file(run.site)),
            hint=f"scontrol update nodename={fold(off)} state=power_up   (on {run.site.controller.name}); "
            f"then deploy cluster {run.inventory} --new-secrets",
        )
