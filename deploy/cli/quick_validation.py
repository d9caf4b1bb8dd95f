"""The quick validation with which a deployment ends, shown."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from deploy.engine.options import Options

if TYPE_CHECKING:
    from deploy.validate.result import Validation


def validate_quickly(
    inventory: Path,
    options: Options,
    *,
    as_data: bool,
    without: Sequence[str] = (),
    earlier: Mapping[str, Any] | None = None,
) -> "Validation":
    """Whether what was deployed works, by all checks but some, and what changed since an earlier validation.

    Raises DeployError when it cannot be asked.
    """
    # A run that finds nothing to do is over in a second, of which these imports would be a part.
    from deploy.cli.validate import progress, show  # noqa: PLC0415
    from deploy.engine.validation import validate_site  # noqa: PLC0415
    from deploy.validate import record  # noqa: PLC0415
    from deploy.validate.catalog import chosen, ordinary  # noqa: PLC0415
    from deploy.validate.comparison import compare  # noqa: PLC0415

    checks = ordinary(chosen([], without))
    found = validate_site(inventory, options, checks, is_quick=True, progress=progress)
    if as_data:
        typer.echo(json.dumps({"event": "validation", **record.as_data(found)}))
    else:
        typer.echo()
        show(found, compare(earlier, found) if earlier else None)
    return found
