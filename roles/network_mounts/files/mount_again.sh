#!/bin/sh
# Storage that was away at boot: mounts it when it is back, and then begins what waited for it.
# Its arguments are where it is mounted. The kernel's table is read: to look at a place may hang.
set -eu

all_mounted() {
  for place; do
    findmnt --kernel --nocanonicalize --mountpoint "$place" >/dev/null || return 1
  done
}

if all_mounted "$@"; then exit 0; fi
until all_mounted "$@"; do
  sleep 10
  for place; do
    # One that is away still is tried again, and keeps no other one waiting.
    systemctl start "$(systemd-escape --path --suffix=mount "$place")" || :
  done
done
# systemd gave up what needs a mount that failed. What has not run since the boot begins; what somebody stopped stays so.
for unit in $(systemctl show --property=Wants --value multi-user.target); do
  began=$(systemctl show --property=InactiveExitTimestampMonotonic --value "$unit")
  [ "$began" != 0 ] || systemctl start --no-block "$unit" || :
done
