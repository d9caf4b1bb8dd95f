#!/bin/sh
# Storage that was away at boot: mounts it when it is back, and then has the boot begin what waited for it.
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
# systemd gives up what needs a mount that failed, and begins what is wanted and does not run when asked again.
exec systemctl start --no-block multi-user.target
