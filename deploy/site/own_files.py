"""What lies beside an inventory, also in one that is a directory, and is no part of it."""

import re

SECRETS = "secrets.yml"
HARDWARE = "hardware.yml"
THRESHOLDS = "validation.yml"
USER_COMMANDS = "user-commands.yml"
SCHEMA = "group_vars.schema.json"
BACKUPS = "backups"
DRILLS = "drills"
FILES = "files"
"""Programs, certificates and the like that variables look up."""
DIRECTORIES = (BACKUPS, DRILLS, FILES)
NAMES = (SECRETS, HARDWARE, THRESHOLDS, USER_COMMANDS, SCHEMA, *DIRECTORIES)
_SUFFIXES = (".age", ".crt", ".key", ".lua", ".pem", ".pub")
PATTERNS = (*(f"^{re.escape(name)}$" for name in NAMES), *(f"{re.escape(suffix)}$" for suffix in _SUFFIXES))
"""By which Ansible passes them over; it would read a private key as a host."""
