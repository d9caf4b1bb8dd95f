# Sourced with KIT and WORK set: `boot` starts ctl1, gpu1 and the admin's machine in namespaces of this one; then
# `admin COMMAND...` runs on the admin's, `on HOST COMMAND...` as root on another, `user COMMAND` as alice on ctl1.

CLEAN="env -i HOME=/root TERM=dumb LANG=C.UTF-8 COLUMNS=160"

admin() {
  nsenter -t "$(cat "$WORK/admin.pid")" -n chroot "$WORK/admin" $CLEAN PATH=/opt/deploy/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

on() {
  local host=$1
  shift
  nsenter -t "$(cat "$WORK/$host.pid")" -a $CLEAN PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

user() {
  echo "\$ $*"
  on ctl1 timeout 60 su - alice -c "$*" </dev/null
  echo "rc $?"
}

_trees() {
  mkdir -p "$WORK/base" "$WORK/home"
  python3 - "$KIT" "$WORK" <<'P'
import sys, tarfile
for name, place in (("base", "base"), ("deploy", "")):
    with tarfile.open(f"{sys.argv[1]}/{name}.tar.xz") as archive:
        archive.extractall(f"{sys.argv[2]}/{place}", filter="fully_trusted")
P
  for host in ctl1 gpu1 admin; do
    cp -a "$WORK/base" "$WORK/$host"
    echo "$host" >"$WORK/$host/etc/hostname"
  done
  cp -a "$WORK/opt" "$WORK/admin/"
  cp -a "$KIT/bundle" "$WORK/admin/srv/bundle"
  cp -a "$KIT/site" "$WORK/admin/site"
  chown -R root:root "$WORK/admin/site"
  chmod 700 "$WORK/admin/site/.lab"
  chmod 600 "$WORK/admin/site/.lab/id_ed25519"
  # The driver as an installer leaves it: in the loader's settings, and on the PATH.
  echo /usr/local/nvidia/lib64 >"$WORK/gpu1/etc/ld.so.conf.d/nvidia.conf"
  ln -sf /usr/local/nvidia/bin/nvidia-smi "$WORK/gpu1/usr/bin/nvidia-smi"
  mkdir -p "$WORK/gpu1/opt/site/bin" "$WORK/gpu1/usr/local/nvidia"
  cp "$KIT"/bin/* "$WORK/gpu1/opt/site/bin/"
  chmod -R a+rX "$WORK/gpu1/opt/site"
  if [ -d /usr/local/nvidia/lib64 ]; then
    mount --bind /usr/local/nvidia "$WORK/gpu1/usr/local/nvidia"
    chroot "$WORK/gpu1" ldconfig
    umount "$WORK/gpu1/usr/local/nvidia"
  fi
}

_child() { # of a process, once it is one of this name
  for _ in $(seq 100); do
    found=$(tr -d ' ' <"/proc/$1/task/$1/children" 2>/dev/null)
    [ -n "$found" ] && grep -q -a "$2" "/proc/$found/cmdline" && echo "$found" && return
    sleep 0.1
  done
}

boot() {
  _trees
  setsid unshare --net --fork sleep 3600 </dev/null >/dev/null 2>&1 &
  _child $! sleep >"$WORK/admin.pid"
  mount --bind /proc "$WORK/admin/proc"
  mount --rbind /dev "$WORK/admin/dev"
  mount --bind /sys "$WORK/admin/sys"
  mount -t tmpfs tmpfs "$WORK/admin/tmp"
  mount -t tmpfs tmpfs "$WORK/admin/run"
  printf '127.0.0.1 localhost\n10.77.0.2 ctl1\n10.77.0.3 gpu1\n' >"$WORK/admin/etc/hosts"
  admin sh -c 'ip link set lo up; ip link add br0 type bridge; ip addr add 10.77.0.1/24 dev br0; ip link set br0 up'
  local groups=/sys/fs/cgroup number=2
  export INIT=
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    echo '+cpuset +cpu +io +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
  else
    groups=$(echo /sys/fs/cgroup/*)
    INIT="systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
  fi
  for host in ctl1 gpu1; do
    for group in $groups; do
      mkdir -p "$group/$host"
      if [ "${group##*/}" = cpuset ]; then
        cat "$group/cpuset.cpus" >"$group/$host/cpuset.cpus"
        cat "$group/cpuset.mems" >"$group/$host/cpuset.mems"
      fi
    done
    # shellcheck disable=SC2086 # so many groups
    setsid unshare --mount --pid --uts --ipc --net --fork sh "$KIT/become.sh" "$WORK/$host" "$host" $groups \
      </dev/null >"$WORK/$host.log" 2>&1 &
    _child $! sbin/init >"$WORK/$host.pid"
    local first
    first=$(cat "$WORK/$host.pid")
    admin sh -c "ip link add v$host type veth peer name eth0 netns $first; ip link set v$host master br0 up"
    nsenter -t "$first" -n chroot "$WORK/admin" \
      sh -c "ip link set lo up; ip addr add 10.77.0.$number/24 dev eth0; ip link set eth0 up"
    number=$((number + 1))
  done
  for host in ctl1 gpu1; do
    for _ in $(seq 150); do on "$host" systemctl is-active --quiet ssh && break; sleep 0.2; done
  done
  {
    echo "10.77.0.2 $(cut -d' ' -f1,2 "$WORK/ctl1/etc/ssh/ssh_host_ed25519_key.pub")"
    echo "10.77.0.3 $(cut -d' ' -f1,2 "$WORK/gpu1/etc/ssh/ssh_host_ed25519_key.pub")"
  } >"$WORK/admin/site/.lab/known_hosts"
  setsid nsenter -t "$(cat "$WORK/admin.pid")" -n chroot "$WORK/admin" \
    python3 -m http.server --directory /srv/bundle --bind 10.77.0.1 8000 >"$WORK/http.log" 2>&1 </dev/null &
  echo $! >"$WORK/http.pid"
}

halt() {
  for file in "$WORK"/*.pid; do kill -9 "$(cat "$file")"; done 2>/dev/null
  wait 2>/dev/null
  sleep 1
  awk -v place="$WORK/" 'index($2, place) == 1 { print $2 }' /proc/mounts | sort -r | while read -r place; do umount -l "$place"; done
  rm -rf "$WORK"
}
