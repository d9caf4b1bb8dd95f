#!/bin/bash
# cluster.sh KIT WORK OUT: deploys a cluster on this machine and its GPU, and keeps what it says in OUT/logs.tgz, also
# of a run that is cut off. Without a GPU it is a rehearsal with one device file. Takes about three minutes.
KIT=$1 WORK=$2 OUT=$3 LOGS=$2.logs
rm -rf "$LOGS"
mkdir -p "$LOGS" "$OUT"
exec 2>&1
# shellcheck source=tests/device/machines.sh
. "$KIT/machines.sh"

say() { echo "== $(date +%T) $*"; }

keep() { tar -C "${LOGS%/*}" -czf "$OUT/logs.new" "${LOGS##*/}" 2>/dev/null && mv "$OUT/logs.new" "$OUT/logs.tgz"; }

finish() {
  kill "$KEEPER" 2>/dev/null
  for host in ctl1 gpu1; do on "$host" journalctl --no-pager >"$LOGS/journal-$host.txt"; done
  cp "$WORK"/*.log "$LOGS/"
  keep
  halt
  say "see $OUT/logs.tgz"
}

step() { # NAME SECONDS COMMAND: of deploy, on the admin's machine
  say "$1"
  admin timeout "$2" sh -c "cd /site && $3" >"$LOGS/$1.txt" 2>&1 </dev/null
  echo "   rc $?: $(tail -n 3 "$LOGS/$1.txt" | grep . | head -n 1)"
}

facts() {
  on gpu1 timeout 20 sh -c "slurmd -C; timeout 8 slurmd -G --conf-server ctl1; cat /run/slurm/conf/gres.conf" >"$LOGS/slurmd-$1.txt" 2>&1
  on ctl1 timeout 20 scontrol show node gpu1 >"$LOGS/node-$1.txt" 2>&1
  grep -h -i gres "$LOGS/slurmd-$1.txt" "$LOGS/node-$1.txt" | head -n 6
}

jobs_of_a_user() {
  user "srun --gpus=1 nvidia-smi -L"
  user "srun nvidia-smi -L"
  user "srun --gpus=1 env | grep -E '^(CUDA|GPU|SLURM_(STEP|JOB)_GPU)'"
  user "srun bash -c 'exec 3<>/dev/nvidia0 && echo opened'"
  user "srun --gpus=1 bash -c 'exec 3<>/dev/nvidia0 && echo opened'"
  user "srun --gpus=1 --mem=8G /opt/site/bin/python3 -c 'import torch; a = torch.ones(4096, 4096, device=\"cuda\"); print((a @ a).sum().item())'"
  user "srun --mem=8G /opt/site/bin/python3 -c 'import torch; print(torch.cuda.is_available())'"
  user "sbatch --wait --gpus=h200:1 --wrap 'nvidia-smi -L' && cat slurm-*.out"
}

layouts() { # what MIG would divide the GPU into; nothing is divided
  cp "$KIT/deploy_mig.py" "$WORK/gpu1/root/"
  mkdir -p "$WORK/gpu1/etc/deploy"
  for layout in '[{"devices": ["1g.18gb", "1g.18gb", "1g.18gb", "4g.71gb"]}]' '[{"devices": ["3g.40gb"]}]' '[]' \
    '[{"devices": ["4g.71gb", "4g.71gb"]}]' '[{"gpus": [1], "devices": ["7g.141gb"]}]'; do
    echo "$layout" | tee "$WORK/gpu1/etc/deploy/mig.json"
    on gpu1 timeout 20 python3 /root/deploy_mig.py check
    echo "rc $?"
  done
  rm "$WORK/gpu1/etc/deploy/mig.json"
}

monitored() {
  for query in up '{__name__=~"gpu:.*"}' ALERTS deploy_nvidia_driver_match 'max_over_time(gpu:power:watts[5m])'; do
    echo "## $query"
    on ctl1 timeout 10 promtool query instant http://127.0.0.1:9090 "$query"
  done
}

trap finish EXIT
(while sleep 8; do keep; done) &
KEEPER=$!
SITE="inventory.ini -e @/srv/bundle/variables.json"
say boot
boot
on gpu1 systemctl is-system-running
[ -z "$(on gpu1 cat /sys/fs/cgroup/cgroup.procs 2>/dev/null)" ] || echo "gpu1: a process is in the way of control groups"
on gpu1 nvidia-smi -L
step deploy 120 "deploy cluster $SITE"
grep -q converged "$LOGS/deploy.txt" || { step report 20 "deploy report inventory.ini"; grep -A 9 FAILED "$LOGS/report.txt"; exit 1; }
facts nvidia
say jobs
jobs_of_a_user >"$LOGS/jobs.txt" 2>&1
head -n 30 "$LOGS/jobs.txt"
sed -i 's/gres_autodetect: nvidia/gres_autodetect: nvml/' "$WORK/admin/site/group_vars/slurm-master.yml"
step deploy-nvml 60 "deploy cluster $SITE"
facts nvml
on gpu1 timeout 20 sh -c "node_health --show; nvidia-smi --format=csv --query-gpu=ecc.errors.uncorrected.volatile.total,remapped_rows.pending,remapped_rows.failure,gpu_recovery_action,fabric.state" >"$LOGS/health.txt" 2>&1
cat "$LOGS/health.txt"
layouts >"$LOGS/mig.txt" 2>&1
cat "$LOGS/mig.txt"
say programs
user "srun --gpus=1 --exclusive --mem=0 --mpi=pmix /opt/site/bin/all_reduce_perf -b 256M -e 4G -f 4 -w 5 -n 20 -c 1 -g 1" >"$LOGS/all_reduce_perf.txt" 2>&1
user "srun --gpus=1 --exclusive --mem=0 /opt/site/bin/nvbandwidth -j" >"$LOGS/nvbandwidth.txt" 2>&1
step validate 120 "deploy validate inventory.ini --burn-in 0.0085 --skip time-limit --json /site/validate.json"
cp "$WORK/admin/site/validate.json" "$LOGS/"
grep -v passed "$LOGS/validate.txt"
monitored >"$LOGS/prometheus.txt" 2>&1
grep ALERTS "$LOGS/prometheus.txt"
step rerun 60 "deploy cluster $SITE"
step status 30 "deploy status inventory.ini"
