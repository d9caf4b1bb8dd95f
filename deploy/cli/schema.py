"""``deploy schema``: the variables as a JSON Schema."""

import json

import typer

from deploy.site.json_schema import variables_schema


def schema() -> None:
    """Print the JSON Schema of all variables, by which editors complete and check group_vars.

    `deploy init` puts it into a new site; print it again after an update of deploy.

    Examples:
      deploy schema > mysite/group_vars.schema.json

    """
    typer.echo(json.dumps(variables_schema(), indent=1))
