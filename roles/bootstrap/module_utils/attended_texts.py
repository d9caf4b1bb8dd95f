"""What unattended-upgrades and needrestart leave alone, and whether they were told otherwise. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

BLACKLIST = "Unattended-Upgrade::Package-Blacklist"
REBOOT = "Unattended-Upgrade::Automatic-Reboot"
# Perl, as needrestart's configuration is; read as needrestart does, over its defaults. Prints those of the
# named services that it would restart: where several patterns match one, any may be the one that it goes by.
NEEDRESTART_RESTARTS = r"""
our $LOGPREF = '[main]';
our %nrconf = (verbosity => 0, restart => 'i', defno => 0, blacklist_rc => [], override_rc => {});
my $file = shift;
my $text = do { local(@ARGV, $/) = $file; <> };
eval $text;
die $@ if $@;
exit if $nrconf{restart} eq 'l';
foreach my $name (@ARGV) {
    next if grep { $name =~ /$_/ } @{$nrconf{blacklist_rc}};
    my @said = map { $nrconf{override_rc}{$_} } grep { $name =~ /$_/ } keys %{$nrconf{override_rc}};
    print "$name\n" if @said ? grep { $_ } @said : !$nrconf{defno};
}
"""
_SERVICES = (
    *("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "sackd", "munge", "mariadb"),
    *("nvidia-persistenced", "nvidia-fabricmanager", "nvidia-dcgm"),
)
_HEAD = "Made by deploy; changes made here are undone by the next run.\n"
_SETTING = re.compile(r'^(?P<name>\S+?)(?:::)? "(?P<value>.*)";$', re.MULTILINE)


def apt_text(packages: Sequence[str]) -> str:
    """The file for apt: patterns for the beginning of a package's name."""
    listed = "".join(f'    "{pattern}";\n' for pattern in packages)
    return f'// {_HEAD}{BLACKLIST} {{\n{listed}}};\n{REBOOT} "false";\n'


def needrestart_text(services: Sequence[str]) -> str:
    """The file for needrestart: patterns for the beginning of a service's name."""
    return f"# {_HEAD}" + "".join(f"$nrconf{{override_rc}}{{qr(^{name})}} = 0;\n" for name in services)


def attended(services: Sequence[str], units: Iterable[str]) -> list[str]:
    """Of the units on a host, and of those that may come, the ones that are to be left alone."""
    pattern = re.compile("|".join(f"(?:{name})" for name in services) or "(?!)")
    known = {*units, *(f"{name}.service" for name in _SERVICES)}
    return sorted(name for name in known if pattern.match(name))


def objections(dump: str, packages: Sequence[str]) -> Iterator[str]:
    """What another file of apt's takes back, by what ``apt-config dump`` says of all of them."""
    settings = [(found["name"], found["value"]) for found in _SETTING.finditer(dump)]
    known = {value for name, value in settings if name == BLACKLIST}
    if missing := [pattern for pattern in packages if pattern not in known]:
        yield f"{BLACKLIST} lacks {', '.join(missing)}"
    if packages and any(name == REBOOT and value not in {"false", "0", "no"} for name, value in settings):
        yield f"{REBOOT} is on"
