#!/bin/bash
# Job torchrun (torchrun-1a2b), node 2 of 2: gpu2.cluster
# Written by dlrun. Run by hand, `bash THIS_FILE` does this node's part of the job without dlrun and ends when
# its ranks end. dlrun's agent does `source THIS_FILE prolog` and starts the ranks itself, from the same plan.
# shellcheck disable=SC1090,SC1091  # what the prolog sources is not here to be checked
# shellcheck disable=SC2016,SC2317  # quoted values are meant as they stand; functions are called by name

dlrun_failed() {  # CODE WHAT
  echo "dlrun: gpu2.cluster: exit code $1 from $2" >&2
  exit "$1"
}

# The prolog: once per node, before its ranks, which start in the environment that it leaves.
if [[ ${1-} != rank ]]; then
  sh -c 'command -v "$0" >/dev/null || { echo "the program $0 is not found, and framework pytorch-torchrun needs it" >&2; exit 1; }' torchrun || dlrun_failed 69 'looking for what framework pytorch-torchrun needs'
fi
if [[ ${1-} == prolog ]]; then return 0; fi
set +eu  # the prolog may have set these
IFS=$' \t\n'

# What every rank of the job has in its environment.
export DLRUN_ATTEMPT=1
export DLRUN_JOB_ID=torchrun-1a2b
export DLRUN_NODES=2
export DLRUN_RUN_DIR=/home/ann/runs/torchrun-1a2b
export DLRUN_SIZE=2
export SLURM_NNODES=2
export SLURM_NPROCS=2
export SLURM_NTASKS=2
export SLURM_NTASKS_PER_NODE=1
export SLURM_STEP_NUM_NODES=2
export SLURM_STEP_NUM_TASKS=2

# One function a rank: its own environment, then its command.
rank_1() {  # worker 1
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=2
  export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
  export DLRUN_LOCAL_RANK=0
  export DLRUN_LOCAL_SIZE=1
  export DLRUN_NODE=1
  export DLRUN_RANK=1
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=1
  export HIP_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
  export ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
  export SLURM_LOCALID=0
  export SLURM_NODEID=1
  export SLURM_PROCID=1
  export ZE_AFFINITY_MASK=0,1,2,3,4,5,6,7
  exec torchrun --nnodes=2 --node_rank=1 --nproc_per_node=8 --master_addr=gpu1 --master_port=22955 --redirects=9:1 --tee=9:1 --no_python train.py
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
dlrun_watch 1 &
dlrun_left=1
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
        echo "dlrun: gpu2.cluster: rank $dlrun_rank ended with exit code $dlrun_value" >&2
        dlrun_stop "$dlrun_value"
      fi
      ;;
  esac
done
if [[ -n ${dlrun_killer-} ]]; then kill -- "-$dlrun_killer" 2>/dev/null; fi
exit "$dlrun_code"
