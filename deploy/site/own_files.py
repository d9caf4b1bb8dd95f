"""What deploy reads and writes beside an inventory, and is no part of it where that is a directory."""

SECRETS = "secrets.yml"
HARDWARE = "hardware.yml"
THRESHOLDS = "validation.yml"
SCHEMA = "group_vars.schema.json"
BACKUPS = "backups"
NAMES = (SECRETS, HARDWARE, THRESHOLDS, SCHEMA, BACKUPS)
