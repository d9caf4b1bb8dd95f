"""Programs of a site that run as root, without a shell and with no PATH of anybody's."""

from collections.abc import Iterator

from deploy.errors import Finding
from deploy.site.inventory import Site
from deploy.site.values import faults, opaque

VARIABLE = "node_health_programs"


def check_programs(site: Site) -> Iterator[Finding]:
    """Commands that name nothing, or something that depends on where it is started."""
    for host in site.nodes:
        programs = host.variables.get(VARIABLE)
        if not programs or opaque(programs) or faults(VARIABLE, programs):
            continue
        for program in programs:
            for key in ("command", "repair"):
                command = [str(word) for word in program.get(key) or ()]
                if key in program and not (command and command[0].startswith("/")):
                    said = f"starts with {command[0]!r}, not with an absolute path" if command else "is empty"
                    yield Finding(
                        host.where(VARIABLE),
                        "invalid-value",
                        f"{VARIABLE}: the {key} of {program['name']} {said}",
                        "write the program and its arguments: [/software/bin/program, --option]",
                    )
