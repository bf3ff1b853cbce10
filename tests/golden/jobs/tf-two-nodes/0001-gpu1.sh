#!/bin/bash
# Job tf (tf-1a2b), node 1 of 2: gpu1
# Written by dlrun. Run by hand, `bash THIS_FILE` does this node's part of the job without dlrun and ends when
# its ranks end. dlrun's agent does `source THIS_FILE prolog` and starts the ranks itself, from the same plan.
# shellcheck disable=SC1090,SC1091  # what the prolog sources is not here to be checked
# shellcheck disable=SC2016,SC2317  # quoted values are meant as they stand; functions are called by name

dlrun_failed() {  # CODE WHAT
  echo "dlrun: gpu1: exit code $1 from $2" >&2
  exit "$1"
}

# The prolog: once per node, before its ranks, which start in the environment that it leaves.
if [[ ${1-} != rank ]]; then
  python -c $'import sys\ntry:\n    from importlib.util import find_spec\nexcept ImportError:\n    from imp import find_module as find_spec\ndef there(name):\n    try:\n        return find_spec(name) is not None\n    except ImportError:\n        return False\nmissing = [name for name in sys.argv[2:] if not there(name)]\nif missing:\n    sys.exit(\'%s has no module %s, and framework %s needs it\' % (sys.executable, \', \'.join(missing), sys.argv[1]))\n' tensorflow-ps tensorflow || dlrun_failed 69 'looking for what framework tensorflow-ps needs'
fi
if [[ ${1-} == prolog ]]; then return 0; fi
set +eu  # the prolog may have set these
IFS=$' \t\n'

# What every rank of the job has in its environment.
export DLRUN_ATTEMPT=1
export DLRUN_JOB_ID=tf-1a2b
export DLRUN_NODES=2
export DLRUN_RUN_DIR=/home/ann/runs/tf-1a2b
export DLRUN_SIZE=18
export SLURM_NNODES=2
export SLURM_NPROCS=18
export SLURM_NTASKS=18
export SLURM_NTASKS_PER_NODE=9
export SLURM_STEP_NUM_NODES=2
export SLURM_STEP_NUM_TASKS=18

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
rank_0() {  # worker 0
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=0
  export DLRUN_LOCAL_RANK=0
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=0
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=0
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=0
  export SLURM_LOCALID=0
  export SLURM_NODEID=0
  export SLURM_PROCID=0
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"worker","index":0}}'
  export ZE_AFFINITY_MASK=0
  dlrun_bound 0 9 python train.py
}
rank_1() {  # worker 1
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=1
  export DLRUN_LOCAL_RANK=1
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=1
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=1
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=1
  export SLURM_LOCALID=1
  export SLURM_NODEID=0
  export SLURM_PROCID=1
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"worker","index":1}}'
  export ZE_AFFINITY_MASK=1
  dlrun_bound 1 9 python train.py
}
rank_2() {  # worker 2
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=2
  export DLRUN_LOCAL_RANK=2
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=2
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=2
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=2
  export SLURM_LOCALID=2
  export SLURM_NODEID=0
  export SLURM_PROCID=2
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"worker","index":2}}'
  export ZE_AFFINITY_MASK=2
  dlrun_bound 2 9 python train.py
}
rank_3() {  # worker 3
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=3
  export DLRUN_LOCAL_RANK=3
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=3
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=3
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=3
  export SLURM_LOCALID=3
  export SLURM_NODEID=0
  export SLURM_PROCID=3
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"worker","index":3}}'
  export ZE_AFFINITY_MASK=3
  dlrun_bound 3 9 python train.py
}
rank_4() {  # worker 4
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=4
  export DLRUN_LOCAL_RANK=4
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=4
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=4
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=4
  export SLURM_LOCALID=4
  export SLURM_NODEID=0
  export SLURM_PROCID=4
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"worker","index":4}}'
  export ZE_AFFINITY_MASK=4
  dlrun_bound 4 9 python train.py
}
rank_5() {  # worker 5
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=5
  export DLRUN_LOCAL_RANK=5
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=5
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=5
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=5
  export SLURM_LOCALID=5
  export SLURM_NODEID=0
  export SLURM_PROCID=5
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"worker","index":5}}'
  export ZE_AFFINITY_MASK=5
  dlrun_bound 5 9 python train.py
}
rank_6() {  # worker 6
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=6
  export DLRUN_LOCAL_RANK=6
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=6
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=6
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=6
  export SLURM_LOCALID=6
  export SLURM_NODEID=0
  export SLURM_PROCID=6
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"worker","index":6}}'
  export ZE_AFFINITY_MASK=6
  dlrun_bound 6 9 python train.py
}
rank_7() {  # worker 7
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=7
  export DLRUN_LOCAL_RANK=7
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=7
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=7
  export HIP_VISIBLE_DEVICES=0
  export ROCR_VISIBLE_DEVICES=7
  export SLURM_LOCALID=7
  export SLURM_NODEID=0
  export SLURM_PROCID=7
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"worker","index":7}}'
  export ZE_AFFINITY_MASK=7
  dlrun_bound 7 9 python train.py
}
rank_16() {  # ps 0
  [[ -v CUDA_DEVICE_ORDER ]] || export CUDA_DEVICE_ORDER=PCI_BUS_ID
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export CUDA_VISIBLE_DEVICES=''
  export DLRUN_LOCAL_RANK=8
  export DLRUN_LOCAL_SIZE=9
  export DLRUN_NODE=0
  export DLRUN_RANK=16
  export DLRUN_ROLE=ps
  export DLRUN_TASK_INDEX=0
  export HIP_VISIBLE_DEVICES=''
  export ROCR_VISIBLE_DEVICES=''
  export SLURM_LOCALID=8
  export SLURM_NODEID=0
  export SLURM_PROCID=16
  export TF_CONFIG='{"cluster":{"worker":["gpu1:2220","gpu1:2221","gpu1:2222","gpu1:2223","gpu1:2224","gpu1:2225","gpu1:2226","gpu1:2227","10.0.0.2:2220","10.0.0.2:2221","10.0.0.2:2222","10.0.0.2:2223","10.0.0.2:2224","10.0.0.2:2225","10.0.0.2:2226","10.0.0.2:2227"],"ps":["gpu1:2230","10.0.0.2:2230"]},"task":{"type":"ps","index":0}}'
  export ZE_AFFINITY_MASK=1023
  dlrun_bound 8 9 python train.py
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
dlrun_watch 0 &
dlrun_watch 1 &
dlrun_watch 2 &
dlrun_watch 3 &
dlrun_watch 4 &
dlrun_watch 5 &
dlrun_watch 6 &
dlrun_watch 7 &
dlrun_watch 16 &
# Services run until the other ranks of the job have ended; where it has more nodes only they know when.
declare -A dlrun_services=([16]=1)
dlrun_left=9
while ((dlrun_left)); do
  read -r -u "$dlrun_pipe" dlrun_event dlrun_rank dlrun_value || continue
  case $dlrun_event in
    start)
      dlrun_groups[dlrun_rank]=$dlrun_value
      if ((dlrun_code)); then kill -TERM -- "-$dlrun_value" 2>/dev/null; fi
      ;;
    end)
      ((dlrun_left -= 1))
      if [[ ${dlrun_services[$dlrun_rank]-} && ${dlrun_done-} ]]; then continue; fi
      unset "dlrun_services[$dlrun_rank]"
      if ((dlrun_value && !dlrun_code)); then
        echo "dlrun: gpu1: rank $dlrun_rank ended with exit code $dlrun_value" >&2
        dlrun_stop "$dlrun_value"
      fi
      ;;
  esac
done
if [[ -n ${dlrun_killer-} ]]; then kill -- "-$dlrun_killer" 2>/dev/null; fi
exit "$dlrun_code"
