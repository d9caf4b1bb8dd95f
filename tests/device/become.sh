#!/bin/sh
# become.sh TREE NAME GROUP...: in new namespaces, makes a tree the root of a machine and becomes its first process.
# Only this process is in the machine's control groups: systemd can hand out no controllers of one with others in it.
set -e
tree=$1 name=$2
shift 2
if [ "${IN_GROUPS:-}" != yes ]; then
  for group in "$@"; do echo 0 >"$group/$name/cgroup.procs"; done
  IN_GROUPS=yes exec unshare --cgroup sh "$0" "$tree" "$name"
fi

mount --make-rprivate /
mount --bind "$tree" "$tree"
cd "$tree"
mount -t proc proc proc
mount -t sysfs sysfs sys
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
else
  mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
  for controller in blkio cpu cpuacct cpuset devices freezer memory pids; do
    mkdir "sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "sys/fs/cgroup/$controller"
  done
  mkdir sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
fi
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
  IFS=: read -r file major minor <<END
$device
END
  mknod -m 666 "dev/$file" c "$major" "$minor"
done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
if [ "$name" = gpu1 ]; then
  # The driver's device files, or one of its number that nothing is behind.
  if [ -e /dev/nvidia0 ]; then cp -a /dev/nvidia* dev/; else mknod -m 666 dev/nvidia0 c 195 0; fi
  mkdir -p usr/local/nvidia outside
  [ -d /usr/local/nvidia/lib64 ] && mount --bind /usr/local/nvidia usr/local/nvidia
  mount --bind / outside
fi
mount --bind "$tree/../home" home
hostname "$name"
pivot_root . mnt
# shellcheck disable=SC2016 # the machine's own shell puts them in
exec chroot . /bin/sh -c 'umount -l /mnt; exec env -i container=lab PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init $INIT' \
  >/var/log/init.log 2>&1 </dev/null
