#!/bin/sh
# Turns a machine of a scenario into one with a kernel of its own (user-mode Linux), for what the kernel of the host may
# lack: the NFS server and client, quotas. It takes over the machine's address; its root is a copy of the machine's,
# and /srv is an ext4 with user and group quotas.
#   guest.sh PUBLIC_KEY [PACKAGE ...]
set -eu
key=$1
shift
root=/guest/root
systemctl is-active --quiet guest && exit 0

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
install="apt-get install -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io"
mkdir -p /guest/kernel
cd /guest
apt-get download -qq user-mode-linux
dpkg-deb --fsys-tarfile user-mode-linux_*.deb | tar -C kernel -xf - ./usr/bin/linux.uml ./usr/lib/uml/modules
mkdir -p $root /guest/memory
mount -t tmpfs -o size=600m tmpfs /guest/memory
tar -C / --one-file-system --exclude=./guest -cf - . | tar -C $root -xf -
for directory in proc sys dev run tmp srv lib/modules; do mkdir -p $root/$directory; done
mv kernel/usr/lib/uml/modules/* $root/lib/modules/
# Much faster than inside, where every system call is emulated.
printf '#!/bin/sh\nexit 101\n' > $root/usr/sbin/policy-rc.d
chmod 755 $root/usr/sbin/policy-rc.d
cp /etc/resolv.conf /etc/hosts $root/etc/
chroot $root $install kmod e2fsprogs "$@" >/dev/null 2>&1
rm $root/usr/sbin/policy-rc.d
: > $root/etc/fstab
echo 'PermitRootLogin yes' > $root/etc/ssh/sshd_config.d/00-guest.conf
mkdir -p $root/root/.ssh
echo "$key" > $root/root/.ssh/authorized_keys
chmod 700 $root/root/.ssh

truncate -s 256M $root/data.img
chroot $root mkfs.ext4 -q -F -O quota -E quotatype=usrquota:grpquota /data.img
address=$(ip -4 -o address show dev eth0 | awk '{print $4}')
gateway=$(ip route | awk '/^default/ {print $3}')
ip link add guest type bridge
ip tuntap add tap0 mode tap
ip address flush dev eth0
for device in eth0 tap0; do ip link set $device master guest; ip link set $device up; done
ip link set guest up
cat > $root/etc/systemd/system/guest.service <<UNIT
[Unit]
DefaultDependencies=no
Before=local-fs.target network.target
[Service]
Type=oneshot
ExecStart=/bin/mount -t ext4 -o usrquota,grpquota /dev/ubda /srv
ExecStart=/sbin/ip link set lo up
ExecStart=/sbin/ip link set vec0 up
ExecStart=/sbin/ip address add $address dev vec0
ExecStart=/sbin/ip route add default via $gateway
[Install]
WantedBy=local-fs.target
UNIT
systemctl --root=$root --quiet enable guest.service
systemd-run --quiet --unit=guest --setenv=HOME=/root --setenv=TMPDIR=/guest/memory \
  /guest/kernel/usr/bin/linux.uml mem=256M rootfstype=hostfs rootflags=$root rw ubda=$root/data.img \
  vec0:transport=tap,ifname=tap0,depth=64,gro=1 con=null con0=null,fd:1 systemd.unified_cgroup_hierarchy=1
