#!/bin/bash
# kit.sh KIT [stand-in]: makes the kit that cluster.sh takes to a machine with a GPU, which has no network: a Debian 13
# (the lab's image), deploy with its ansible-core, a site and its bundle. What measures GPUs goes into KIT/bin by hand.
set -e
KIT=$1 HERE=$(cd "$(dirname "$0")/../.." && pwd) DEPLOY=$HERE/.venv/bin/deploy TREE=$1.tree
mkdir -p "$KIT/bin" "$KIT/site/group_vars" "$KIT/site/.lab" "$TREE"
podman image exists localhost/deploy-lab:trixie || { echo "first: deploy lab up --release trixie"; exit 1; }
cp "$HERE"/tests/device/*.sh "$HERE/roles/mig/files/deploy_mig.py" "$KIT/"

cat >"$KIT/site/inventory.ini" <<'I'
[all]
ctl1 ansible_host=10.77.0.2
gpu1 ansible_host=10.77.0.3
[slurm-master]
ctl1
[slurm-node]
gpu1
[slurm-metric]
ctl1
[slurm-cluster:children]
slurm-master
slurm-node
slurm-metric
[all:vars]
ansible_user=admin
ansible_become=True
ansible_ssh_private_key_file={{ inventory_dir }}/.lab/id_ed25519
ansible_ssh_common_args=-o 'UserKnownHostsFile="{{ inventory_dir }}/.lab/known_hosts"' -o StrictHostKeyChecking=yes
I
cat >"$KIT/site/group_vars/all.yml" <<'Y'
# These machines share one kernel and so one clock, and /home.
time_sync_options: "-F 1 -x"
users_create_home: false
openmpi_packages: [openmpi-bin]
users_accounts: [{name: alice, uid: 2001}]
slurm_accounts_accounts: [{name: research, description: Research groups}]
slurm_accounts_users: [{name: alice, accounts: [research]}]
grafana_source: none
Y
echo 'scratch_may_fill_root: true' >"$KIT/site/group_vars/slurm-node.yml"
printf 'users_create_home: true\nslurmctld_gres_autodetect: nvml\n' >"$KIT/site/group_vars/slurm-master.yml"
cat >"$KIT/site/validation.yml" <<'Y'
programs:
  nccl: /opt/site/bin/all_reduce_perf
  nvbandwidth: /opt/site/bin/nvbandwidth
  python: /opt/site/bin/python3
alerts_that_may_fire: [ClockNotSynchronized]
Y
[ -e "$KIT/site/.lab/id_ed25519" ] || ssh-keygen -q -t ed25519 -N '' -f "$KIT/site/.lab/id_ed25519"

# With NVML's plugin, which is in Debian's component contrib; the first deployment does without it.
"$DEPLOY" bundle "$KIT/site/inventory.ini" "$KIT/bundle" --release trixie --url http://10.77.0.1:8000
sed -i 's/autodetect: nvml/autodetect: nvidia/' "$KIT/site/group_vars/slurm-master.yml"
if [ "${2:-}" = stand-in ]; then
  sed -i 's/autodetect: nvidia/autodetect: "off"/' "$KIT/site/group_vars/slurm-master.yml"
  echo 'slurmctld_cgroup_parameters: {CgroupPlugin: cgroup/v1}' >>"$KIT/site/group_vars/slurm-master.yml"
  printf 'nvidia_driver_source: none\nslurmd_hardware: {memory_mb: 4096, gpus: [{type: h200, count: 1}]}\n' \
    >>"$KIT/site/group_vars/slurm-node.yml"
fi

container=$(podman create localhost/deploy-lab:trixie)
podman export "$container" | tar -x -C "$TREE"
podman rm "$container" >/dev/null
rm -rf "$TREE"/var/lib/apt/lists/* "$TREE"/var/cache/apt/*.bin
mkdir -p "$TREE/var/lib/apt/lists/partial" "$TREE/var/lib/admin/.ssh"
cp "$KIT/site/.lab/id_ed25519.pub" "$TREE/var/lib/admin/.ssh/authorized_keys"
chown -R 500:500 "$TREE/var/lib/admin/.ssh"
chmod 700 "$TREE/var/lib/admin/.ssh"
# What the tree has already need not travel twice.
chroot "$TREE" dpkg-query --show --showformat '${Package}_${Version}_${Architecture}.deb\n' | sed 's/:/%3a/' |
  (cd "$KIT/bundle/packages/debian-13" && xargs rm -f)
find "$KIT/bundle" -name '*aarch64*' -delete
tar -C "$TREE" -c . | xz -T0 >"$KIT/base.tar.xz"

# The command, for the tree's Python: installed there without pip, which the tree has not.
"$HERE/.venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$TREE.wheels" "$HERE"
version=$(chroot "$TREE" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
place=opt/deploy/lib/python$version/site-packages
"$HERE/.venv/bin/pip" install --quiet --no-compile --only-binary :all: --python-version "$version" \
  --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 --target "$TREE/$place" "$TREE".wheels/*.whl
mkdir -p "$TREE/opt/deploy/bin"
ln -s /usr/bin/python3 "$TREE/opt/deploy/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = %s\n' "$version" >"$TREE/opt/deploy/pyvenv.cfg"
for program in deploy:deploy.cli:main ansible-playbook:ansible.cli.playbook:main ansible-inventory:ansible.cli.inventory:main; do
  IFS=: read -r name module function <<<"$program"
  printf '#!/opt/deploy/bin/python3\nimport sys\nfrom %s import %s\nsys.exit(%s())\n' "$module" "$function" "$function" \
    >"$TREE/opt/deploy/bin/$name"
  chmod 755 "$TREE/opt/deploy/bin/$name"
done
tar -C "$TREE" -c opt/deploy | xz -T0 >"$KIT/deploy.tar.xz"
rm -rf "$TREE" "$TREE.wheels"
du -sh "$KIT"
