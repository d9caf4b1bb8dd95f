"""Energy accounting: which hosts have what it measures by, and whether the sources fit each other."""

from collections.abc import Iterator

from deploy.errors import Finding
from deploy.site.inventory import Host, Site

SOURCES = "slurmctld_energy_sources"
_SENSORS, _NVML = "slurmctld_energy_sensors", "nvml"
_WHOLE_NODE = frozenset({"ipmi", "pm_counters", "xcc"})
_BY_SENSORS = frozenset({"ipmi", "xcc"})
_OF_IPMI_ALONE = ("interpolate", "power_sensors")


def energy_sources(site: Site) -> tuple[str, ...]:
    """What energy is measured by; nothing where nobody measures any."""
    found = site.controller.value(SOURCES) if site.controllers else ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def energy_hosts(site: Site) -> tuple[Host, ...]:
    """The hosts whose daemons load the plugins, or are to forget them; none where the site says nothing."""
    if not any(SOURCES in host.variables for host in site.controllers):
        return ()
    names = {host.name for host in (*site.controllers, *site.nodes)}
    return tuple(host for host in site.cluster if host.name in names)


def check_energy(site: Site) -> Iterator[Finding]:
    """Sources that would count something twice, or have nothing to measure by."""
    for master in site.controllers:
        declared = master.value(SOURCES)
        sources = declared if isinstance(declared, list) else []
        yield from _counted_twice(master, sources)
        yield from _without_nvml(site, master, sources)
        yield from _unused_sensors(master, sources)


def _counted_twice(master: Host, sources: list[str]) -> Iterator[Finding]:
    whole = [source for source in sources if source in _WHOLE_NODE]
    if whole and len(set(sources)) > 1:
        others = ", ".join(source for source in sources if source != whole[0])
        yield Finding(
            master.where(SOURCES),
            "energy-counted-twice",
            f"{SOURCES} has {whole[0]}, which measures the whole node, and {others}: Slurm adds them up",
            f"leave one: {SOURCES}: [{whole[0]}]",
        )


def _without_nvml(site: Site, master: Host, sources: list[str]) -> Iterator[Finding]:
    if "gpu" not in sources or master.value("slurmctld_gres_autodetect") == _NVML:
        return
    if not any(node.value("mig_layout") for node in site.nodes):
        yield Finding(
            master.where(SOURCES),
            "energy-without-nvml",
            f"{SOURCES} has gpu, and Slurm asks GPUs for their power by NVML alone",
            "set slurmctld_gres_autodetect: nvml, or leave gpu out",
        )


def _unused_sensors(master: Host, sources: list[str]) -> Iterator[Finding]:
    sensors = master.variables.get(_SENSORS)
    if not isinstance(sensors, dict) or not sensors:
        return
    if not _BY_SENSORS.intersection(sources):
        yield Finding(
            master.where(_SENSORS),
            "energy-sensors-unused",
            f"{_SENSORS} is set, and {SOURCES} has neither ipmi nor xcc: slurmctld would not start by it",
            f"set {SOURCES}: [ipmi], or remove it",
        )
    unknown = [name for name in _OF_IPMI_ALONE if name in sensors]
    if "xcc" in sources and unknown:
        yield Finding(
            master.where(_SENSORS),
            "energy-sensors-unused",
            f"{_SENSORS} has {' and '.join(unknown)}, which only ipmi knows: slurmd would not start by it",
            "remove it, or name ipmi in place of xcc",
        )
