"""Where Slurm's daemons listen, as slurmctld_parameters or Slurm's own defaults say."""

from collections.abc import Mapping

from deploy.site.inventory import Site
from deploy.site.slurm_parameters import slurm_parameter

_DEFAULTS: Mapping[str, int] = {"SlurmctldPort": 6817, "SlurmdPort": 6818}


def slurm_ports(site: Site, parameter: str) -> str:
    """The value of SlurmctldPort or SlurmdPort: a number, a range ``7000-7003``, or a template."""
    return slurm_parameter(site.controller, parameter) or str(_DEFAULTS[parameter])


def first_slurm_port(site: Site, parameter: str) -> str:
    """The first of the ports, where one daemon is asked."""
    return slurm_ports(site, parameter).partition("-")[0]
