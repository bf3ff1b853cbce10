#!/bin/bash
# Job gpt (gpt-1a2b), node 2 of 2: gpu2.cluster
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
  python -c $'import sys\ntry:\n    from importlib.util import find_spec\nexcept ImportError:\n    from imp import find_module as find_spec\ndef there(name):\n    try:\n        return find_spec(name) is not None\n    except ImportError:\n        return False\nmissing = [name for name in sys.argv[2:] if not there(name)]\nif missing:\n    sys.exit(\'%s has no module %s, and framework %s needs it\' % (sys.executable, \', \'.join(missing), sys.argv[1]))\n' pytorch torch || dlrun_failed 69 'looking for what framework pytorch needs'
fi
if [[ ${1-} == prolog ]]; then return 0; fi
set +eu  # the prolog may have set these
IFS=$' \t\n'

# What every rank of the job has in its environment.
export DLRUN_ATTEMPT=1
export DLRUN_CONTEXT_SIZE=1
export DLRUN_DATA_SIZE=2
export DLRUN_EXPERT_DATA_SIZE=1
export DLRUN_EXPERT_SIZE=2
export DLRUN_JOB_ID=gpt-1a2b
export DLRUN_MESH_NAMES=pipeline,data,context,tensor
export DLRUN_MESH_SHAPE=1,2,1,2
export DLRUN_NODES=2
export DLRUN_PIPELINE_SIZE=1
export DLRUN_RUN_DIR=/home/ann/runs/gpt-1a2b
export DLRUN_SIZE=4
export DLRUN_TENSOR_SIZE=2
export GROUP_WORLD_SIZE=2
export MASTER_ADDR=gpu1
export MASTER_PORT=26271
export ROLE_WORLD_SIZE=4
export SLURM_NNODES=2
export SLURM_NPROCS=4
export SLURM_NTASKS=4
export SLURM_NTASKS_PER_NODE=2
export SLURM_STEP_NUM_NODES=2
export SLURM_STEP_NUM_TASKS=4
export TORCHELASTIC_MAX_RESTARTS=0
export TORCHELASTIC_RESTART_COUNT=0
export TORCHELASTIC_RUN_ID=gpt-1a2b
export TORCHELASTIC_USE_AGENT_STORE=False
export WORLD_SIZE=4

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
rank_2() {  # worker 2
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=8
  export CUDA_VISIBLE_DEVICES=0,1
  export DLRUN_CONTEXT_RANK=0
  export DLRUN_DATA_RANK=1
  export DLRUN_EXPERT_DATA_RANK=0
  export DLRUN_EXPERT_RANK=1
  export DLRUN_LOCAL_RANK=0
  export DLRUN_LOCAL_SIZE=2
  export DLRUN_NODE=1
  export DLRUN_PIPELINE_RANK=0
  export DLRUN_RANK=2
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=2
  export DLRUN_TENSOR_RANK=0
  export GROUP_RANK=1
  export HIP_VISIBLE_DEVICES=0,1
  export LOCAL_RANK=0
  export LOCAL_WORLD_SIZE=2
  export RANK=2
  export ROCR_VISIBLE_DEVICES=0,1
  export ROLE_NAME=worker
  export ROLE_RANK=2
  export SLURM_LOCALID=0
  export SLURM_NODEID=1
  export SLURM_PROCID=2
  export TORCHELASTIC_ERROR_FILE=/home/ann/runs/gpt-1a2b/logs/error-2-1.json
  export ZE_AFFINITY_MASK=0,1
  dlrun_bound 0 2 python train.py
}
rank_3() {  # worker 3
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=8
  export CUDA_VISIBLE_DEVICES=0,1
  export DLRUN_CONTEXT_RANK=0
  export DLRUN_DATA_RANK=1
  export DLRUN_EXPERT_DATA_RANK=0
  export DLRUN_EXPERT_RANK=1
  export DLRUN_LOCAL_RANK=1
  export DLRUN_LOCAL_SIZE=2
  export DLRUN_NODE=1
  export DLRUN_PIPELINE_RANK=0
  export DLRUN_RANK=3
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=3
  export DLRUN_TENSOR_RANK=1
  export GROUP_RANK=1
  export HIP_VISIBLE_DEVICES=0,1
  export LOCAL_RANK=1
  export LOCAL_WORLD_SIZE=2
  export RANK=3
  export ROCR_VISIBLE_DEVICES=0,1
  export ROLE_NAME=worker
  export ROLE_RANK=3
  export SLURM_LOCALID=1
  export SLURM_NODEID=1
  export SLURM_PROCID=3
  export TORCHELASTIC_ERROR_FILE=/home/ann/runs/gpt-1a2b/logs/error-3-1.json
  export ZE_AFFINITY_MASK=0,1
  dlrun_bound 1 2 python train.py
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
dlrun_watch 2 &
dlrun_watch 3 &
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
        echo "dlrun: gpu2.cluster: rank $dlrun_rank ended with exit code $dlrun_value" >&2
        dlrun_stop "$dlrun_value"
      fi
      ;;
  esac
done
if [[ -n ${dlrun_killer-} ]]; then kill -- "-$dlrun_killer" 2>/dev/null; fi
exit "$dlrun_code"
