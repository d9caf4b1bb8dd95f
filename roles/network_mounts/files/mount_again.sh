#!/bin/sh
# Storage that was away at boot: mounts it when it is back, and then has the boot begin what waited for it.
# Its arguments are where it is mounted. The kernel's table is read: to look at a place may hang.
set -eu

# The first of the places where nothing is mounted.
missing() {
  for place; do
    findmnt --kernel --nocanonicalize --mountpoint "$place" >/dev/null || { printf '%s\n' "$place"; return; }
  done
}

[ -n "$(missing "$@")" ] || exit 0
while [ -n "$(missing "$@")" ]; do
  sleep 10
  for place; do
    systemctl start "$(systemd-escape --path --suffix=mount "$place")" || :
  done
done
# systemd gives up what needs a mount that failed, and begins what is wanted and does not run when asked again.
exec systemctl start --no-block multi-user.target
