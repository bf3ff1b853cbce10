#!/bin/bash
# Job uneven (uneven-1a2b), node 2 of 4: a2
# Written by dlrun. Run by hand, `bash THIS_FILE` does this node's part of the job without dlrun and ends when
# its ranks end. dlrun's agent does `source THIS_FILE prolog` and starts the ranks itself, from the same plan.
# shellcheck disable=SC1090,SC1091  # what the prolog sources is not here to be checked
# shellcheck disable=SC2016,SC2317  # quoted values are meant as they stand; functions are called by name

dlrun_failed() {  # CODE WHAT
  echo "dlrun: a2: exit code $1 from $2" >&2
  exit "$1"
}
if [[ ${1-} == prolog ]]; then return 0; fi
set +eu  # the prolog may have set these
IFS=$' \t\n'

# What every rank of the job has in its environment.
export DLRUN_ATTEMPT=1
export DLRUN_JOB_ID=uneven-1a2b
export DLRUN_NODES=4
export DLRUN_RUN_DIR=/home/ann/runs/uneven-1a2b
export DLRUN_SIZE=8
export SLURM_NNODES=4
export SLURM_NPROCS=8
export SLURM_NTASKS=8
export SLURM_STEP_NUM_NODES=4
export SLURM_STEP_NUM_TASKS=8

# Binds the command to run number $1 of this node's cores, divided into $2 equal runs.
dlrun_bound() {
  local share=$1 of=$2 key value part cores=()
  shift 2
  while read -r key value; do
    [[ $key == Cpus_allowed_list: ]] && break
  done </proc/self/status
  for part in ${value//,/ }; do
    while read -r key; do cores+=("$key"); done < <(seq "${part%-*}" "${part#*-}")
  done
  local each=$((${#cores[@]} / of)) IFS=,
  if ((each == 0)) || ! command -v taskset >/dev/null; then exec "$@"; fi
  exec taskset -c "${cores[*]:share * each:each}" "$@"
}

# One function a rank: its own environment, then its command.
rank_4() {  # worker 4
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=8
  export CUDA_VISIBLE_DEVICES=0
  export DLRUN_LOCAL_RANK=0
  export DLRUN_LOCAL_SIZE=2
  export DLRUN_NODE=1
  export DLRUN_RANK=4
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=4
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=0
  export SLURM_LOCALID=0
  export SLURM_NODEID=1
  export SLURM_PROCID=4
  export ZE_AFFINITY_MASK=0
  dlrun_bound 0 2 python train.py --job_name=worker --task_index=4 --ps_hosts=a3:2230,a4:2230 --worker_hosts=a1:2220,a1:2221,a1:2222,a1:2223,a2:2220,a2:2221
}
rank_5() {  # worker 5
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=8
  export CUDA_VISIBLE_DEVICES=1
  export DLRUN_LOCAL_RANK=1
  export DLRUN_LOCAL_SIZE=2
  export DLRUN_NODE=1
  export DLRUN_RANK=5
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=5
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=1
  export SLURM_LOCALID=1
  export SLURM_NODEID=1
  export SLURM_PROCID=5
  export ZE_AFFINITY_MASK=1
  dlrun_bound 1 2 python train.py --job_name=worker --task_index=5 --ps_hosts=a3:2230,a4:2230 --worker_hosts=a1:2220,a1:2221,a1:2222,a1:2223,a2:2220,a2:2221
}

cd -- /home/ann/jobs || dlrun_failed 74 'the working directory'

# Every rank leads a process group of its own, so that its children end with it, and has a watcher that tells its
# start and its end through a pipe. The first rank that fails ends the others; its exit code is the script's.
exec {dlrun_pipe}<> <(:)
dlrun_watch() {  # RANK
  local err
  exec {err}>&2 2>/dev/null  # bash's own lines about jobs go nowhere
  trap : HUP INT TERM  # the ranks end by these, then the watchers
  set -m
  "rank_$1" </dev/null 2>&"$err" {err}>&- {dlrun_pipe}>&- &
  echo "start $1 $!" >&"$dlrun_pipe"
  until wait "$!" || ! kill -0 "$!" 2>/dev/null; do :; done
  wait "$!"
  echo "end $1 $?" >&"$dlrun_pipe"
}

dlrun_code=0
dlrun_groups=()
dlrun_signal() {  # SIGNAL
  local group
  for group in "${dlrun_groups[@]}"; do kill "-$1" -- "-$group" 2>/dev/null; done
}
dlrun_stop() {  # CODE
  if ((dlrun_code)); then return; fi
  dlrun_code=$1
  dlrun_signal TERM
  set -m
  (sleep 10; dlrun_signal KILL) &
  dlrun_killer=$!
  set +m
}
trap 'dlrun_stop 129' HUP
trap 'dlrun_stop 130' INT
trap 'dlrun_stop 143' TERM
dlrun_watch 4 &
dlrun_watch 5 &
dlrun_left=2
while ((dlrun_left)); do
  read -r -u "$dlrun_pipe" dlrun_event dlrun_rank dlrun_value || continue
  case $dlrun_event in
    start)
      dlrun_groups[dlrun_rank]=$dlrun_value
      if ((dlrun_code)); then kill -TERM -- "-$dlrun_value" 2>/dev/null; fi
      ;;
    end)
      ((dlrun_left -= 1))
      if ((dlrun_value && !dlrun_code)); then
        echo "dlrun: a2: rank $dlrun_rank ended with exit code $dlrun_value" >&2
        dlrun_stop "$dlrun_value"
      fi
      ;;
  esac
done
if [[ -n ${dlrun_killer-} ]]; then kill -- "-$dlrun_killer" 2>/dev/null; fi
exit "$dlrun_code"
