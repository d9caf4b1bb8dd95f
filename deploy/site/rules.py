"""What argument_specs cannot say of a value: its range, or how it is written.

Named by path, as docs/variables.md does: ``slurmctld_partitions[].max_time``. A whole number that is not
listed must not be negative; one whose name ends in _port is a port.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from deploy.site.addresses import is_host, is_ip, is_network, is_of_a_host
from deploy.site.public_keys import is_public_key

_PORTS = 65535
_SLURM_NUMBER = 0xFFFFFFFD
"""Slurm keeps numbers in 32 bits, of which the last values mean something else."""


_WHOLE_NUMBER = re.compile(r"-?[0-9]+")


@dataclass(frozen=True)
class Range:
    """A whole number from ``low`` to ``high``, both included."""

    low: int
    high: int | None = None

    @property
    def expected(self) -> str:
        """In words."""
        end = f"to {self.high}" if self.high else "on"
        return f"a number from {self.low} {end}"

    def fits(self, value: object) -> bool:
        """Whether a value is such a number; a text of digits is one, too."""
        if not _WHOLE_NUMBER.fullmatch(str(value)):
            return False
        number = int(str(value))
        return self.low <= number and (self.high is None or number <= self.high)


@dataclass(frozen=True)
class Form:
    """A text that a pattern matches whole; ``quoted`` where YAML makes another number of it.

    ``judge`` says what a pattern cannot; ``example`` is one that it takes. What is not ``shown`` may be meant
    for nobody's eyes.
    """

    pattern: str
    expected: str
    quoted: bool = False
    judge: Callable[[str], bool] | None = None
    example: str = ""
    shown: bool = True

    def fits(self, value: object) -> bool:
        """Whether a value is such a text; digits are ASCII's, and no other alphabet's spaces are letters."""
        if self.quoted and not isinstance(value, str):
            return False
        text = str(value)
        matches = re.fullmatch(self.pattern, text, re.ASCII) and re.fullmatch(self.pattern, text)
        return bool(matches) and (self.judge is None or self.judge(text))


Rule = Range | Form

_NOT_NEGATIVE = Range(0)
_UNLIMITED = Range(-1, _SLURM_NUMBER)
_COUNT = Range(1)
PORT = Range(1, _PORTS)
_PROGRAM_NAME = Form(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "a name: letters, digits, _ . and -")
_IDENTITY = Range(1, 0xFFFFFFFE)
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_MOST_BYTES = 2**63 - 1
_MOST_SECONDS = 2**31 - 1
_SYSTEM = frozenset(
    {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root"}
    | {"/run", "/sbin", "/sys", "/usr", "/var", "/var/lib"}
)
"""Where the system itself lies: nothing may be mounted there, and nobody is at home."""


def _is_time(text: str) -> bool:
    """More than nothing; minutes and seconds below 60 where something stands before them."""
    if text.upper() in {"UNLIMITED", "INFINITE", "-1"}:
        return True
    days, dash, rest = text.rpartition("-")
    numbers = [int(part) for part in rest.split(":")]
    if any(number > 59 for number in numbers[1:]):  # noqa: PLR2004
        return False
    # minutes, minutes:seconds or hours:minutes:seconds; behind days hours come first (sbatch(1), --time)
    factors = (3600, 60, 1) if dash or len(numbers) > 2 else (60, 1)  # noqa: PLR2004
    seconds = int(days or 0) * 86400 + sum(n * f for n, f in zip(numbers, factors, strict=False))
    return 0 < seconds <= _MOST_SECONDS


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_size(text: str) -> bool:
    return 0 < int(text.rstrip("KMGT")) * _UNITS.get(text[-1], 1) <= _MOST_BYTES


def _is_size_or_empty(text: str) -> bool:
    return not text or _is_size(text)


def _is_share(text: str) -> bool:
    if text.endswith("%"):
        return 0 < int(text[:-1]) <= 100  # noqa: PLR2004
    return text == "infinity" or _is_size(text)


def _is_share_or_none(text: str) -> bool:
    return text in {"0", "0%"} or _is_share(text)


def _is_age(text: str) -> bool:
    return int("".join(filter(str.isdigit, text))) > 0


def _is_port_range(text: str) -> bool:
    first, _, last = text.partition("-")
    return 0 < int(first) <= int(last or first) <= _PORTS


def _is_duration(text: str) -> bool:
    return any(int(number) for number in re.findall(r"[0-9]+", text))


def _is_listen_address(text: str) -> bool:
    return is_ip(text.removeprefix("[").removesuffix("]"))


def _is_proxy(text: str) -> bool:
    try:
        url = urlsplit(text)
        return bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def _is_ldap_server(text: str) -> bool:
    try:
        return urlsplit(text).port != 0 and bool(urlsplit(text).hostname)
    except ValueError:
        return False


def _is_nfs_client(text: str) -> bool:
    return is_network(text) or is_host(text)


def _is_directory(text: str) -> bool:
    return ".." not in PurePosixPath(text).parts


def _is_place(text: str) -> bool:
    path = PurePosixPath(text)
    return _is_directory(text) and path != path.parent and str(path).replace("//", "/") not in _SYSTEM


_TIME = Form(
    r"(?i)(\d+-\d+(:\d+){0,2}|\d+(:\d+){0,2}|UNLIMITED|INFINITE|-1)",
    'a time in quotes, more than 0: "minutes", "hours:minutes:seconds", "days-hours:minutes:seconds", '
    "minutes and seconds behind others below 60, or UNLIMITED",
    quoted=True,
    judge=_is_time,
    example="1-12:00:00",
)
_LIMITED_TIME = Form(
    r"\d+-\d+(:\d+){0,2}|\d+(:\d+){0,2}",
    _TIME.expected.replace(", or UNLIMITED", ""),
    quoted=True,
    judge=_is_time,
    example="4:00:00",
)
_MOMENT = Form(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?",
    "a day and a time in quotes, as in 2026-12-24T08:00",
    quoted=True,
    judge=_is_moment,
    example="2026-12-24T08:00",
)
_SIZE = Form(r"\d+[KMGT]?", "a size above 0, as in 512M or 4G", judge=_is_size, example="4G")
_SIZE_OR_NOTHING = Form(
    r"|\d+[KMGT]?", "a size above 0, as in 512M or 4G, or empty", judge=_is_size_or_empty, example="4G"
)
_PART_OR_SIZE = Form(
    r"\d+[KMGT]?|\d{1,3}%|infinity",
    "a part up to 100% or a size, as in 25%, 16G or infinity",
    judge=_is_share,
    example="25%",
)
_PART_OR_NOTHING = Form(
    _PART_OR_SIZE.pattern, f"{_PART_OR_SIZE.expected}; or 0", judge=_is_share_or_none, example="0"
)
_QUOTA = Form(r"\d+[KMGT]?", "a size, as in 500G (without a unit KiB), or 0 for no limit")
_DIRECTORY = Form(r"/[^\s]*", "an absolute path without spaces and ..", judge=_is_directory, example="/data")
_PLACE = Form(
    r"/[^\s]*",
    "an absolute path without spaces and .., and not the system's own",
    judge=_is_place,
    example="/data",
)
_AGE = Form(
    r"(?i)\d+(hour|day|month)s?",
    "an age above 0 with its unit, as in 12months, 30days or 48hours",
    judge=_is_age,
    example="30days",
)
_HOME_MODE = Form(
    r"0?[0-7]?7[0145]{2}",
    'a file mode in quotes that lets its owner in, and nobody else write, as in "0700"',
    quoted=True,
)
_ACCOUNTING_NAME = Form(
    r"[a-z0-9_][a-z0-9_.@+-]*",
    "a name as Slurm keeps it: small letters, digits and _ . @ + -, in quotes where it is a number",
    quoted=True,
)
_TOPOLOGY_NAME = Form(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", "a name: letters, digits, _ . and -", quoted=True)
_FAIRSHARE = Form(r"(?i)parent|-1|\d{1,9}", "a number of shares, parent, or -1 to take it back")
_USER_NAME = Form(r"[a-z_][a-z0-9_-]{0,31}", "a login name: small letters, digits, - and _, at most 32")
_DIRECTORY_GROUP = Form(
    r"[A-Za-z_][A-Za-z0-9_.@-]{0,63}", "a group's name: letters, digits and _ . @ -, no digit first"
)
_DN = Form(
    r"|[A-Za-z0-9.-]+=[^\r\n]*[^\s]", "the name of an entry on one line, as in dc=site,dc=example, or empty"
)
_GPU_TYPE = Form(r"|[A-Za-z0-9_][A-Za-z0-9_.-]*", "a GPU's type: letters, digits, _ . and -")
_REGISTRY_ACCOUNT = Form(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", "a name: letters, digits, _ . and -")
_PORTAL_GROUP = Form(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", "the name of a group")
_DATABASE_WORD = Form(r"[A-Za-z0-9_$-]{1,64}", "a name of at most 64 letters, digits, _ $ and -")
_ONE_LINE = Form(r"[^\r\n]*", "one line")
_MOUNT_OPTION = Form(r"[^\s,]+", "one option of a mount, without commas")
_NFS_CLIENT = Form(
    r"[0-9a-fA-F.:]+(/[0-9.]{1,15})?|[A-Za-z0-9_][A-Za-z0-9_.-]*",
    "an address, a network as in 10.0.0.0/16, or a host name; never everybody (*)",
    judge=_is_nfs_client,
    example="10.0.0.0/16",
)
_VARIABLE = Form(r"[A-Za-z_][A-Za-z0-9_]*", "a variable's name: letters, digits and _, no digit first")
_SHELL_VALUE = Form(
    r"(?!.*\$\()[^\r\n\"\\`]*", "one line without double quotes, backslashes and commands in ` or $()"
)
_NETWORK = Form(
    r"[0-9a-fA-F.:]+(/\d{1,3})?",
    "an address or a network, as in 10.0.0.0/16",
    judge=is_network,
    example="10.0.0.0/16",
)
_PROXY = Form(
    r'|https?://[^\s"/#?]+/?',
    "a URL, as in http://proxy.example:3128, or empty; # and ? in a password are %23 and %3F",
    judge=lambda text: not text or _is_proxy(text),
)
_DURATION_PATTERN = r"(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?"
_INTERVAL = Form(
    _DURATION_PATTERN,
    "a time above 0 with its units, as in 15s, 5m or 1h30m",
    judge=_is_duration,
    example="15s",
)
_WAIT = Form(rf"(?=\d){_DURATION_PATTERN}", "a time with its units, as in 30s, 5m or 1h30m")
_LISTEN_ADDRESS = Form(
    r"|[0-9a-fA-F.:]+|\[[0-9a-fA-F.:]+\]",
    "an IP address of the host without a port, or empty for all",
    judge=lambda text: not text or _is_listen_address(text),
)
_PAGE = Form(r"|https?://[^\s/]+\S*", "the address of a page, as in https://metrics.example, or empty")
_SHARE_OF_USE = Form(r"-1|\d+(\.\d+)?", "a number from 0 on, or -1 to take it back")
_FINGERPRINT = Form(r"|([0-9A-Fa-f]\s*){40}", "the 40 digits of a key's fingerprint")
_ADDRESS_WORD = Form(r"[A-Za-z0-9_.:-]+", "an address or a host name", judge=is_host, example="10.0.0.5")
_CERTIFICATE = Form(
    r"(?s)|(?!.*PRIVATE KEY).*-----BEGIN CERTIFICATE-----\s.+\s-----END CERTIFICATE-----.*",
    "the text of a certificate, from -----BEGIN CERTIFICATE----- to its END, or empty",
    shown=False,
)
_PUBLIC_KEY = Form(
    r"[^\r\n]+",
    "a public key on one line, as in a file that ends with .pub: ssh-ed25519 AAAA… name",
    judge=is_public_key,
    example="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + 43 * "A",
    shown=False,
)

_AGE_KEY = re.compile(r"age1[02-9ac-hj-np-z]{58}")


def _is_recipient(text: str) -> bool:
    """Whether age can encrypt to it: a key of its own, or one of ssh's of the two kinds that it takes."""
    is_of_ssh = text.startswith(("ssh-ed25519 ", "ssh-rsa ")) and is_public_key(text)
    return bool(_AGE_KEY.fullmatch(text)) or is_of_ssh


_MODULE_WORD = Form(
    r"[A-Za-z0-9][\w.+-]*", "a name without spaces and slashes, in quotes where it is a number", quoted=True
)
_INDEX = Form(
    r"(https?|file)://[^\s@]+",
    "an address without a password, which belongs into .netrc of the account that builds",
)
_SHA256 = Form(
    r"[0-9a-f]{64}", "a SHA-256 checksum: 64 digits and small letters a to f, as sha256sum shows it"
)
_URL = Form(r"(https?|ftp|file)://\S+", "an address: http://, https://, ftp:// or file:///PATH")

_ONE_WORD = Form(r"[^\s\"']+", "one word, without spaces and quotes")

PORT_RANGE = Form(
    r"\d{1,5}(-\d{1,5})?",
    "a port or a range of ports, as in 8000-8099",
    judge=_is_port_range,
    example="8000-8099",
)
_SOFTWARE_VERSION = Form(r"\d[A-Za-z0-9.~-]*", 'a version in quotes, as in "5.4.1"', quoted=True)
_APPTAINER = Form(r"\d[A-Za-z0-9.~-]*", 'a version in quotes, as in "1.5.3"', quoted=True)

RULES: Mapping[str, Rule] = {
    "backup_alert_days": Range(1),
    "backup_keep.daily": Range(1),
    "backup_keep.weekly": Range(0),
    "backup_recipients[]": Form(
        r"[^\r\n]+",
        "a public key, as age-keygen prints it (age1…) or of ssh (ssh-ed25519 or ssh-rsa, on one line)",
        judge=_is_recipient,
        example="age1" + 58 * "q",
        shown=False,
    ),
    "alertmanager_external_url": _PAGE,
    "alertmanager_group_interval": _INTERVAL,
    "alertmanager_group_wait": _WAIT,
    "alertmanager_repeat_interval": _INTERVAL,
    "environment_modules_shared[]": _DIRECTORY,
    "environment_modules_software[].name": _MODULE_WORD,
    "environment_modules_software[].prefix": Form(
        r"/[^\s{}\\]*",
        "an absolute path without spaces, braces and ..",
        judge=_is_directory,
        example="/software/x",
    ),
    "environment_modules_software[].requires[]": Form(
        r"[A-Za-z0-9][\w.+/-]*", "a module, as in ucx/1.19-cuda"
    ),
    "environment_modules_software[].version": _MODULE_WORD,
    "environment_modules_trees[]": _DIRECTORY,
    "firewall_admin_networks[]": _NETWORK,
    "firewall_cluster_networks[]": _NETWORK,
    "firewall_login_networks[]": _NETWORK,
    "firewall_open[].from[]": _NETWORK,
    "firewall_open[].ports[]": PORT_RANGE,
    "bootstrap_archive": Form(r"|(https?|file)://\S+", "an address: http://, https:// or file:///PATH"),
    "bootstrap_mirror": Form(rf"|{_URL.pattern}", _URL.expected),
    "apptainer_package_files[].sha256": _SHA256,
    "apptainer_package_files[].systems[]": Form(
        r"(Debian|Ubuntu)-\d+", "a distribution and its major version, as in Debian-12"
    ),
    "apptainer_package_files[].url": _URL,
    "apptainer_package_files[].version": _APPTAINER,
    "apptainer_version": Form(rf"|{_APPTAINER.pattern}", _APPTAINER.expected, quoted=True),
    "enroot_cache_age": Form(r"0*[1-9]\d*(s|m|min|h|d|w)", "an age with its unit, as in 30d"),
    "enroot_temp_directory": Form(r"|/[^\s]*", "an absolute path without spaces, or empty"),
    "enroot_cache_directory": _PLACE,
    "enroot_data_directory": _PLACE,
    "enroot_hooks[]": Form(r"[\w.+-]+\.sh", "the name of a hook, as in 50-slurm-pmi.sh"),
    "enroot_image_directory": Form(r"|/[^\s]*", "an absolute path without spaces, or empty"),
    "enroot_image_group": _USER_NAME,
    "enroot_package_files[].sha256": _SHA256,
    "enroot_package_files[].url": _URL,
    "enroot_runtime_directory": _DIRECTORY,
    "package_cache_port": PORT,
    "package_cache_ports[]": PORT,
    "pyxis_runtime_directory": _DIRECTORY,
    "prometheus_evaluation_interval": _INTERVAL,
    "prometheus_external_url": _PAGE,
    "prometheus_release.sha256": _SHA256,
    "prometheus_release.url": _URL,
    "prometheus_retention_size": Form(
        r"|\d+([KMGTPE]?B)", "a size with its unit, as in 500GB, or empty for no limit"
    ),
    "prometheus_retention_time": _INTERVAL,
    "prometheus_scrape_interval": _INTERVAL,
    # Empty where the catalogue's is meant.
    "pyxis_source.sha256": Form(rf"|{_SHA256.pattern}", _SHA256.expected),
    "pyxis_source.url": Form(rf"|{_URL.pattern}", _URL.expected),
    "pyxis_source.version": Form(r"|\d[A-Za-z0-9.~]*", "a version, as in 0.24.0"),
    "gpu_exporter_dcgm_address": Form(
        r"\S+:\d{1,5}", "a host or an address with its port, as in localhost:5555"
    ),
    "gpu_exporter_dcgm_fields[].meaning": Form(r"[^\r\n,\"]+", "a line without commas and quotes"),
    "gpu_exporter_dcgm_fields[].name": Form(r"DCGM_\w+", "a field of DCGM, as in DCGM_FI_PROF_SM_ACTIVE"),
    "gpu_exporter_dcgm_version": Form(r"|\d+\.\d+\.\d+", "a version of NVIDIA's exporter, as in 4.8.2"),
    "gpu_exporter_interval": _COUNT,
    "gpu_exporter_job_directory": Form(r"|/[^\s\"]*", "an absolute path without spaces, or empty"),
    "gpu_exporter_wheels[].sha256": _SHA256,
    "gpu_exporter_wheels[].url": Form(
        r"(https?|ftp|file)://\S+\.whl",
        "the address of a wheel, which ends in .whl: https:// or file:///PATH",
    ),
    "grafana_external_url": _PAGE,
    "hosts_file_address": Form(
        r"[0-9a-fA-F:.]+", "a host's IPv4 or IPv6 address", judge=is_of_a_host, example="10.0.0.11"
    ),
    "job_ssh_admin_groups[]": _USER_NAME,
    "job_ssh_admin_users[]": _USER_NAME,
    "job_ssh_node_name": Form(r"|[A-Za-z0-9_][A-Za-z0-9_.-]*", "a node's name: letters, digits, _ . and -"),
    "motd_help": _ONE_LINE,
    "motd_text[]": _ONE_LINE,
    "ssh_server_allow_groups[]": _USER_NAME,
    "sssd_allow_groups[]": _DIRECTORY_GROUP,
    "sssd_bind_dn": _DN,
    "sssd_ca": _CERTIFICATE,
    "sssd_cache_seconds": _COUNT,
    "sssd_home": Form(
        r"|/[A-Za-z0-9_./%-]*%u[A-Za-z0-9_./%-]*",
        "an absolute path with %u for the name, as in /home/%u, or empty",
        judge=lambda text: not text or _is_directory(text),
        example="/home/%u",
    ),
    "sssd_home_mode": _HOME_MODE,
    "sssd_local_users[]": _USER_NAME,
    "sssd_max_id": Form(r"0|[1-9]\d{3,9}", "a number from 1000 on, or 0 for no limit"),
    "sssd_min_id": Range(1000, 0xFFFFFFFE),
    "sssd_search_base": _DN,
    "sssd_servers[]": Form(
        r"ldaps?://([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\])(:\d{1,5})?/?",
        "a server as ldaps://HOST, or ldap://HOST, which has to speak StartTLS",
        judge=_is_ldap_server,
        example="ldaps://ldap.site.example",
    ),
    "sssd_shell": Form(
        rf"|{_DIRECTORY.pattern}",
        f"{_DIRECTORY.expected}; or empty",
        judge=_is_directory,
        example="/bin/bash",
    ),
    "sssd_sudo_groups[].name": _DIRECTORY_GROUP,
    "sssd_timeout": Range(1, 60),
    "log_client_files[]": _DIRECTORY,
    "log_client_lines_per_second": Range(1, 1_000_000),
    "log_client_spool_mb": _COUNT,
    "log_client_ca": _CERTIFICATE,
    "log_server_certificate": _CERTIFICATE,
    "log_server_keep_days": _COUNT,
    "log_server_port": PORT,
    "login_limits_cpus": Form(r"\d+(\.\d+)?", "a number from 0 on"),
    "login_limits_exempt_users[]": _USER_NAME,
    "login_limits_memory": _PART_OR_SIZE,
    "login_limits_processes": _COUNT,
    "login_limits_swap": _PART_OR_NOTHING,
    "container_toolkit_version": Form(r"|\d+(\.\d+)+-\d+", "the version of the packages, as in 1.18.1-1"),
    "cuda_toolkit_versions[]": Form(r"\d+\.\d+", 'a version of CUDA in quotes, as in "12.4"', quoted=True),
    "dcgm_version": Form(r"|\d+\.\d+\.\d+", "a version of DCGM, as in 4.4.2"),
    "dcgm_cuda": Form(r"|\d{2}", 'a series of CUDA in quotes, as in "13"'),
    "job_programs_clean_directories[]": _DIRECTORY,
    "job_programs_epilog[].name": _PROGRAM_NAME,
    "job_programs_epilog[].seconds": _COUNT,
    "job_programs_gpu_directory": _DIRECTORY,
    "job_programs_prolog[].name": _PROGRAM_NAME,
    "job_programs_prolog[].seconds": _COUNT,
    "mariadb_bind_address": _LISTEN_ADDRESS,
    "mariadb_databases[]": _DATABASE_WORD,
    "mariadb_users[].privileges": Form(
        r"[^/:\s]+\.[^/:\s]+:[^/:\r\n]+(/[^/:\s]+\.[^/:\s]+:[^/:\r\n]+)*",
        "DATABASE.TABLE:PRIVILEGE,PRIVILEGE, several with / between",
    ),
    "mariadb_users[].host": Form(r"[A-Za-z0-9_.:%/-]+", "a host, an address or a pattern with %"),
    "mariadb_innodb_buffer_pool_size": _SIZE_OR_NOTHING,
    "mariadb_innodb_lock_wait_timeout": _COUNT,
    "mariadb_innodb_log_file_size": _SIZE,
    "mariadb_max_allowed_packet": _SIZE,
    "jupyter_server_apps[].name": Form(
        r"[a-z0-9][a-z0-9-]{0,39}", "small letters, digits and hyphens", example="code"
    ),
    "jupyter_server_apps[].seconds": _COUNT,
    "jupyter_server_index_url": Form(rf"|{_INDEX.pattern}", _INDEX.expected),
    "ml_stack_build_directory": _DIRECTORY,
    "ml_stack_directory": _PLACE,
    "ml_stack_environments[].extra_index_urls[]": _INDEX,
    "ml_stack_environments[].index_url": _INDEX,
    "ml_stack_environments[].name": _MODULE_WORD,
    "ml_stack_environments[].requirements[]": Form(
        r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?==[^\s;*]+( *;[^\r\n]*)?( +--hash=sha\d+:[0-9a-f]+)*",
        "a package with its exact version, as in torch==2.9.1",
    ),
    "ml_stack_environments[].version": _MODULE_WORD,
    "ml_stack_owner": _USER_NAME,
    "conda_channel_alias": _PAGE,
    "conda_channels[]": _ONE_WORD,
    "conda_directory": Form(
        r"(/|\$HOME\b|\$\{?[A-Za-z_])[A-Za-z0-9_./${}-]*",
        "an absolute path, or one that begins with a variable, as in $HOME/.micromamba or "
        "/scratch/$USER/conda",
        judge=_is_directory,
        example="/scratch/$USER/conda",
    ),
    "conda_files[].sha256": _SHA256,
    "conda_files[].url": _URL,
    "conda_files[].version": _SOFTWARE_VERSION,
    "conda_version": Form(rf"|{_SOFTWARE_VERSION.pattern}", _SOFTWARE_VERSION.expected, quoted=True),
    "seff_index_url": Form(rf"|{_INDEX.pattern}", _INDEX.expected),
    "shared_directories_paths[].group": _DIRECTORY_GROUP,
    "shared_directories_paths[].mode": Form(
        r"0?[0-7]?[0-7]{3}",
        'a mode in quotes, of three or four digits from 0 to 7, as in "2775"',
        quoted=True,
    ),
    "shared_directories_paths[].owner": _DIRECTORY_GROUP,
    "shared_directories_paths[].path": _PLACE,
    "software_tree_directory": Form(
        rf"|{_PLACE.pattern}",
        f"{_PLACE.expected}; or empty",
        judge=lambda text: not text or _is_place(text),
        example="/software",
    ),
    "software_tree_easybuild_archives[].sha256": _SHA256,
    "software_tree_easybuild_archives[].url": _URL,
    "software_tree_easybuild_archives[].version": _SOFTWARE_VERSION,
    "software_tree_easybuild_version": Form(
        rf"|{_SOFTWARE_VERSION.pattern}", _SOFTWARE_VERSION.expected, quoted=True
    ),
    "software_tree_group": Form(rf"|{_DIRECTORY_GROUP.pattern}", f"{_DIRECTORY_GROUP.expected}; or empty"),
    "software_tree_owner": Form(
        rf"|(?!root$){_DIRECTORY_GROUP.pattern}", "the name of an account that is not root's, or empty"
    ),
    "software_tree_spack_archives[].sha256": _SHA256,
    "software_tree_spack_archives[].url": _URL,
    "software_tree_spack_archives[].version": _SOFTWARE_VERSION,
    "software_tree_spack_version": Form(
        rf"|{_SOFTWARE_VERSION.pattern}", _SOFTWARE_VERSION.expected, quoted=True
    ),
    "node_health_disks[].path": _DIRECTORY,
    "node_health_mounts[].path": _DIRECTORY,
    "node_health_programs[].seconds": Range(1, 30),
    "node_health_services[]": Form(r"[A-Za-z0-9@_.:-]+", "a service's name"),
    "network_mounts_filesystems[].directory": _DIRECTORY,
    "network_mounts_filesystems[].name": Form(r"[A-Za-z0-9_.-]+", "a name: letters, digits, _ . and -"),
    "network_mounts_filesystems[].options[]": _MOUNT_OPTION,
    "network_mounts_filesystems[].path": _PLACE,
    "network_mounts_filesystems[].servers[]": Form(
        r"[A-Za-z0-9_.:\[\]-]+(@[a-z0-9]+)?",
        "an address or a host name, with Lustre's network as in 10.0.0.1@o2ib",
    ),
    "network_mounts_filesystems[].user": Form(r"[A-Za-z0-9_.-]+", "a user of Ceph, without client."),
    "nfs_client_mounts[].export": _DIRECTORY,
    "nfs_client_mounts[].options[]": _MOUNT_OPTION,
    "nfs_client_mounts[].path": _PLACE,
    "nfs_client_mounts[].server": _ADDRESS_WORD,
    "nfs_client_options[]": _MOUNT_OPTION,
    "nfs_server_clients[]": _NFS_CLIENT,
    "nfs_server_exports[].clients[]": _NFS_CLIENT,
    "nfs_server_exports[].mount": Form(r"|/[^\s]*", "an absolute path without spaces, or empty"),
    "nfs_server_exports[].options[]": Form(r"[a-z_]+(=[A-Za-z0-9_.:/@+-]+)?", "one option of exports(5)"),
    "nfs_server_exports[].path": _PLACE,
    "nfs_server_threads": _COUNT,
    "quotas_filesystems[].path": _DIRECTORY,
    "quotas_filesystems[].each_user.space": _QUOTA,
    "quotas_filesystems[].each_user.space_warning": _QUOTA,
    "quotas_filesystems[].groups[].space": _QUOTA,
    "quotas_filesystems[].groups[].space_warning": _QUOTA,
    "quotas_filesystems[].users[].space": _QUOTA,
    "quotas_filesystems[].users[].space_warning": _QUOTA,
    "scratch_directory": _PLACE,
    "scratch_private_directories[]": _DIRECTORY,
    "proxy_http": _PROXY,
    "proxy_https": _PROXY,
    "proxy_no_proxy[]": Form(r"[^\s,]+", "one name, domain or network"),
    "mig_layout[].devices[]": Form(
        r"[1-9]g\.\d+gb(\+[a-z.]+)?", "a profile of an instance, as in 3g.40gb or 1g.10gb+me"
    ),
    "nvidia_driver_kernel": Form(r"|\d[\w.+~-]*", "a kernel as uname -r calls it, as in 6.1.0-56-amd64"),
    "nvidia_driver_branch": Form(r"|\d{3}", 'a branch of the driver in quotes, as in "580"'),
    "nvidia_driver_version": Form(r"|\d{3}(\.\d+){1,2}", "a version of the driver, as in 580.95.05"),
    "nvidia_repository_container_key_fingerprint": _FINGERPRINT,
    "nvidia_repository_cuda_key_fingerprint": _FINGERPRINT,
    "rdma_memlock": Form(r"unlimited|\d+", "a number of KiB, or unlimited"),
    "reboot_nodes_at_once": _COUNT,
    "slurm_accounts_accounts[].default_qos": _ACCOUNTING_NAME,
    "slurm_accounts_accounts[].budget.lower_qos": _ACCOUNTING_NAME,
    "slurm_accounts_accounts[].managers[]": _ACCOUNTING_NAME,
    "slurm_accounts_accounts[].members[]": _ACCOUNTING_NAME,
    "slurm_accounts_accounts[].name": _ACCOUNTING_NAME,
    "slurm_accounts_accounts[].parent": _ACCOUNTING_NAME,
    "slurm_accounts_accounts[].qos[]": _ACCOUNTING_NAME,
    "slurm_accounts_database_port": PORT,
    "slurm_accounts_accounts[].fairshare": _FAIRSHARE,
    "slurm_accounts_users[].fairshare": _FAIRSHARE,
    "slurm_accounts_qos[].flags[]": Form(
        r"(?i)DenyOnLimit|EnforceUsageThreshold|NoDecay|NoReserve|OverPartQOS|PartitionMaxNodes|PartitionMinNodes"
        r"|PartitionTimeLimit|Relative|RequiresReservation|UsageFactorSafe",
        "a flag of a QOS, as sacctmgr(1) lists them",
    ),
    "slurm_accounts_qos[].limit_factor": _SHARE_OF_USE,
    "slurm_accounts_qos[].name": _ACCOUNTING_NAME,
    "slurm_accounts_qos[].preempt[]": _ACCOUNTING_NAME,
    "slurm_accounts_qos[].usage_factor": _SHARE_OF_USE,
    "slurm_accounts_qos[].usage_threshold": _SHARE_OF_USE,
    "slurm_accounts_users[].accounts[]": _ACCOUNTING_NAME,
    "slurm_accounts_users[].default_account": _ACCOUNTING_NAME,
    "slurm_accounts_users[].default_qos": _ACCOUNTING_NAME,
    "slurm_accounts_users[].name": _ACCOUNTING_NAME,
    "slurm_accounts_users[].qos[]": _ACCOUNTING_NAME,
    "slurm_reservations_planned[].duration": _LIMITED_TIME,
    "slurm_reservations_planned[].end": _MOMENT,
    "slurm_reservations_planned[].features": _ONE_WORD,
    "slurm_reservations_planned[].licenses[]": _ONE_WORD,
    "slurm_reservations_planned[].name": Form(
        r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a reservation's name: letters, digits, _ . and -", quoted=True
    ),
    "slurm_reservations_planned[].node_count": _COUNT,
    "slurm_reservations_planned[].accounts[]": _ONE_WORD,
    "slurm_reservations_planned[].start": _MOMENT,
    "slurm_reservations_planned[].tres": _ONE_WORD,
    "slurm_reservations_planned[].user_groups[]": _ONE_WORD,
    "slurm_reservations_planned[].users[]": _ONE_WORD,
    "slurmctld_accounting_enforce[]": Form(
        r"(?i)associations|limits|nojobs|nosteps|qos|safe|wckeys|all|none",
        "one of associations, limits, nojobs, nosteps, qos, safe, wckeys, all, none",
    ),
    "slurm_registry_accounts[].name": _REGISTRY_ACCOUNT,
    "slurm_registry_ca": _CERTIFICATE,
    "slurm_registry_certificate": _CERTIFICATE,
    "slurm_registry_collect_at": Form(
        r"([01]\d|2[0-3]):[0-5]\d", 'a time of the day in quotes, as in "03:30"', quoted=True
    ),
    "slurm_registry_directory": _DIRECTORY,
    "slurm_registry_layer_mb": _COUNT,
    "slurm_registry_max_gb": _COUNT,
    "slurm_registry_upstream_proxy": _PROXY,
    "slurm_registry_upstreams[].name": Form(
        r"[a-z0-9][a-z0-9-]*(\.[a-z0-9-]+)+", "a registry's name as images have it, as in docker.io"
    ),
    "slurm_registry_upstreams[].url": Form(
        r"|https?://[^\s/@]+/?", "an address, as in https://registry-1.docker.io"
    ),
    "slurm_registry_user": _REGISTRY_ACCOUNT,
    # Counters of processors begin anew within some minutes (slurm.conf(5), AcctGatherNodeFreq).
    "slurmctld_energy_node_seconds": Range(0, 299),
    "slurmctld_energy_sensors.power_sensors": Form(
        r"Node=(\d+(,\d+)*|DCMI|DCMI_ENHANCED)(;\w+=\d+(,\d+)*)*",
        "sensors of the node and of its parts, as in Node=16,19;Socket0=16 or Node=DCMI",
    ),
    "slurmctld_energy_sensors.seconds": Range(1, 3600),
    "slurmctld_energy_sensors.timeout_seconds": Range(1, 600),
    "slurmctld_gpu_frequency": Form(
        r"|((memory=)?(low|medium|high|highm1|[1-9]\d*)(,(?!$)|$)){1,2}",
        "a frequency in MHz, or low, medium, high or highm1, as in medium,memory=high",
    ),
    "slurm_rest_certificate": _CERTIFICATE,
    "slurm_rest_requests_per_second": _COUNT,
    "slurm_auth_overlap_seconds": Range(0, 86400),
    "slurm_rest_threads": Range(2, 1024),
    "slurm_portal_admin_groups[]": _PORTAL_GROUP,
    "slurm_portal_environments[].modules[]": Form(
        r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*", "a module, as in pytorch/2.9.1"
    ),
    "slurm_portal_environments[].name": Form(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}", "a word"),
    "slurm_portal_groups[]": _PORTAL_GROUP,
    "slurm_portal_idle_minutes": _NOT_NEGATIVE,
    "slurm_portal_images[].image": Form(
        r"[A-Za-z0-9/](?!.*//)(?!.*\.\.(/|$))[A-Za-z0-9._/:#@+-]{0,510}[A-Za-z0-9]",
        "the whole path of an image, or its address, as in registry.site.example#team/image:1.0",
    ),
    "slurm_portal_images[].name": Form(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}", "a word"),
    "slurm_portal_index_url": Form(rf"|{_INDEX.pattern}", _INDEX.expected),
    "slurm_portal_login_attempts": _COUNT,
    "slurm_portal_login_minutes": _COUNT,
    "slurm_portal_most.cpus": _COUNT,
    "slurm_portal_most.gpus": _NOT_NEGATIVE,
    "slurm_portal_most.memory_gb": _COUNT,
    "slurm_portal_most.minutes": _COUNT,
    "slurm_portal_prometheus_url": Form(r"|https?://\S+", "an address, as in http://10.0.0.1:9090"),
    "slurm_portal_templates[].name": Form(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", "a word"),
    "slurm_portal_wait_minutes": _COUNT,
    "slurmctld_block_sizes[]": _COUNT,
    "slurmctld_blocks[].name": _TOPOLOGY_NAME,
    "slurmctld_cluster_name": Form(
        r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,39}",
        "a name of at most 40 letters, digits, _ . and -, in quotes where it is a number",
        quoted=True,
    ),
    "slurmctld_health_check_interval": Range(0, 65533),
    "slurmctld_health_check_program": Form(r"|/[^\s]*", "an absolute path without spaces, or empty"),
    "slurmctld_licenses[].count": Range(1, _SLURM_NUMBER),
    "slurmctld_licenses[].name": Form(
        r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a license's name: letters, digits, _ . and -", quoted=True
    ),
    "slurmctld_mpi_default": Form(r"[A-Za-z0-9_]*", "one word, as in pmix"),
    "slurmctld_partitions[].allow_groups[]": Form(r"[^\s,]+", "one group, without spaces and commas"),
    "slurmctld_partitions[].default_cpus_per_gpu": _COUNT,
    "slurmctld_partitions[].default_memory_per_gpu_mb": _COUNT,
    "slurmctld_partitions[].default_time": _TIME,
    "slurmctld_partitions[].max_cpus_per_node": _COUNT,
    "slurmctld_partitions[].max_nodes": _COUNT,
    "slurmctld_partitions[].max_time": _TIME,
    "slurmctld_partitions[].name": Form(
        r"(?i)(?!default$)[a-z0-9_][a-z0-9_.-]*",
        "a partition's name: letters, digits, _ . and -, in quotes where it is a number, and not DEFAULT",
        quoted=True,
    ),
    "slurmctld_partitions[].priority_job_factor": Range(0, 65533),
    "slurmctld_partitions[].priority_tier": Range(0, 65533),
    "slurmctld_partitions[].tres_billing_weights": Form(
        r"[\w/:.-]+=\d+(\.\d+)?[KMGTP]?(,[\w/:.-]+=\d+(\.\d+)?[KMGTP]?)*",
        "a list of resources with weights, as in CPU=1.0,Mem=0.25G,GRES/gpu=16",
    ),
    "slurmctld_plugstack[]": Form(
        r"(required|optional|include)[ \t]+\S[^\r\n]*|#[^\r\n]*",
        "a line of plugstack.conf: required, optional or include, and a path (spank(8))",
    ),
    "slurmctld_priority_weights.age": Range(0, _SLURM_NUMBER),
    "slurmctld_priority_weights.fairshare": Range(0, _SLURM_NUMBER),
    "slurmctld_priority_weights.job_size": Range(0, _SLURM_NUMBER),
    "slurmctld_priority_weights.partition": Range(0, _SLURM_NUMBER),
    "slurmctld_priority_weights.qos": Range(0, _SLURM_NUMBER),
    "slurmctld_preempt_exempt_minutes": Range(0, 1440),
    "slurmctld_resume_rate": Range(0, 65533),
    "slurmctld_resume_timeout": Range(1, 65533),
    "slurmctld_slurmd_timeout": Range(0, 65533),
    "slurmctld_suspend_except_partitions[]": _ONE_WORD,
    "slurmctld_suspend_rate": Range(0, 65533),
    "slurmctld_suspend_time": Range(1, _SLURM_NUMBER),
    "slurmctld_suspend_timeout": Range(1, 65533),
    "slurmctld_timeout": Range(5, 65533),
    "slurmctld_state_save_location": _PLACE,
    "slurmctld_switches[].name": _TOPOLOGY_NAME,
    "slurmctld_switches[].switches[]": _TOPOLOGY_NAME,
    "slurmd_features[]": Form(r"[A-Za-z0-9_][\w.=/-]*", "a feature: letters, digits, _ . = / and -"),
    "slurmd_hardware.cores_per_socket": _COUNT,
    "slurmd_hardware.cpus": _COUNT,
    "slurmd_hardware.gpus[].count": _COUNT,
    "slurmd_hardware.gpus[].files": Form(
        r"|/[^\s]*", "device files by absolute paths, as in /dev/nvidia[0-3]"
    ),
    "slurmd_hardware.gpus[].type": _GPU_TYPE,
    "slurmd_hardware.memory_mb": Range(1, 0xFFFFFFFF),
    "slurmd_hardware.sockets": _COUNT,
    "slurmd_hardware.threads_per_core": _COUNT,
    "slurmd_options": _ONE_LINE,
    "slurmd_weight": Range(0, 0xFFFFFFF0),
    "slurmdbd_archive_dir": Form(
        r"|/[^\s]*",
        f"{_PLACE.expected}; or empty",
        judge=lambda text: not text or _is_place(text),
    ),
    "slurmdbd_database_host": Form(
        r"|[A-Za-z0-9_.:-]+", _ADDRESS_WORD.expected, judge=lambda text: not text or is_host(text)
    ),
    "slurmdbd_database_name": _DATABASE_WORD,
    "slurmdbd_database_port": PORT,
    "slurmdbd_database_user": _DATABASE_WORD,
    "slurmdbd_port": PORT,
    "slurmdbd_purge.event": _AGE,
    "slurmdbd_purge.job": _AGE,
    "slurmdbd_purge.resv": _AGE,
    "slurmdbd_purge.step": _AGE,
    "slurmdbd_purge.suspend": _AGE,
    "slurmdbd_purge.txn": _AGE,
    "slurmdbd_purge.usage": _AGE,
    "slurmdbd_start_timeout": _COUNT,
    "time_sync_allow[]": _NETWORK,
    "time_sync_local_stratum": Range(0, 15),
    "time_sync_options": _ONE_LINE,
    "time_sync_servers[]": _ADDRESS_WORD,
    "user_environment_job_variables[].name": _VARIABLE,
    "user_environment_job_variables[].value": _SHELL_VALUE,
    "user_environment_variables[].name": _VARIABLE,
    "user_environment_variables[].value": _SHELL_VALUE,
    "users_accounts[].group": _USER_NAME,
    "users_accounts[].groups[]": _USER_NAME,
    "users_accounts[].home": _PLACE,
    "users_accounts[].name": _USER_NAME,
    "users_accounts[].shell": _DIRECTORY,
    "users_accounts[].ssh_keys[]": _PUBLIC_KEY,
    "users_accounts[].uid": _IDENTITY,
    "users_directories[]": _PLACE,
    "users_groups[].gid": _IDENTITY,
    "users_groups[].name": _USER_NAME,
    "users_home_mode": _HOME_MODE,
    "users_slurm_gid": _IDENTITY,
    "users_slurm_uid": _IDENTITY,
}


def rule_of(path: str, spec: Mapping[str, Any]) -> Rule | None:
    """What a value at a path must keep to, besides its type."""
    if path in RULES:
        return RULES[path]
    if re.fullmatch(r"\w+_listen_address", path):
        return _LISTEN_ADDRESS
    if spec.get("type") != "int":
        return None
    if re.fullmatch(r"\w+_port", path):
        return PORT
    # -1 takes a limit of an account, user or QOS back.
    return _UNLIMITED if path.startswith("slurm_accounts_") else _NOT_NEGATIVE
