"""Pages of HTML from the templates beside this module; a page loads nothing from elsewhere."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: str, **values: object) -> str:
    """The page that a template makes of values; every text in them is escaped."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
