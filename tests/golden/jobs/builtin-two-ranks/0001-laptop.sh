#!/bin/bash
# Job fashion (fashion-1a2b), node 1 of 1: laptop
# Written by dlrun. Run by hand, `bash THIS_FILE` does this node's part of the job without dlrun and ends when
# its ranks end. dlrun's agent does `source THIS_FILE prolog` and starts the ranks itself, from the same plan.
# shellcheck disable=SC1090,SC1091  # what the prolog sources is not here to be checked
# shellcheck disable=SC2016,SC2317  # quoted values are meant as they stand; functions are called by name

dlrun_failed() {  # CODE WHAT
  echo "dlrun: laptop: exit code $1 from $2" >&2
  exit "$1"
}
if [[ ${1-} == prolog ]]; then return 0; fi
set +eu  # the prolog may have set these
IFS=$' \t\n'

# What every rank of the job has in its environment.
export DLRUN_ATTEMPT=1
export DLRUN_JOB_ID=fashion-1a2b
export DLRUN_NODES=1
export DLRUN_RUN_DIR=/home/ann/runs/fashion-1a2b
export DLRUN_SIZE=2

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
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=2
  export DLRUN_LOCAL_RANK=0
  export DLRUN_LOCAL_SIZE=2
  export DLRUN_NODE=0
  export DLRUN_RANK=0
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=0
  dlrun_bound 0 2 /opt/dlrun/bin/dlrun-train --config /home/ann/runs/fashion-1a2b/train.json
}
rank_1() {  # worker 1
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=2
  export DLRUN_LOCAL_RANK=1
  export DLRUN_LOCAL_SIZE=2
  export DLRUN_NODE=0
  export DLRUN_RANK=1
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=1
  dlrun_bound 1 2 /opt/dlrun/bin/dlrun-train --config /home/ann/runs/fashion-1a2b/train.json
}

dlrun_script=$(realpath -- "${BASH_SOURCE[0]}")
cd -- /home/ann/jobs || dlrun_failed 74 'the working directory'

# The job's files, written where they are not there yet.
dlrun_file() {  # PATH TEXT
  if [[ -e $1 ]]; then return; fi
  { mkdir -p -- "${1%/*}" && printf %s "$2" >"$1.$$" && mv -- "$1.$$" "$1"; } || dlrun_failed 74 "$1"
}
dlrun_file /home/ann/runs/fashion-1a2b/train.json '{
  "value": {
    "name": "fashion",
    "train": {
      "model": "mnist-cnn",
      "data": {
        "format": "idx",
        "dir": "/home/ann/jobs/data/fashion"
      },
      "batch": 64,
      "epochs": 3,
      "optimizer": {
        "name": "sgd",
        "lr": 0.05,
        "momentum": 0.9
      }
    },
    "checkpoint": {
      "dir": "/home/ann/jobs/ckpt",
      "every": "200steps",
      "keep": 2
    }
  },
  "sources": {
    "": "job.yaml:1:1",
    "/name": "job.yaml:1:7",
    "/train": "job.yaml:6:3",
    "/train/model": "job.yaml:6:10",
    "/train/data": "job.yaml:7:9",
    "/train/data/format": "job.yaml:7:18",
    "/train/data/dir": "job.yaml:7:28",
    "/train/batch": "job.yaml:8:10",
    "/train/epochs": "job.yaml:9:11",
    "/train/optimizer": "job.yaml:10:14",
    "/train/optimizer/name": "job.yaml:10:21",
    "/train/optimizer/lr": "job.yaml:10:30",
    "/train/optimizer/momentum": "job.yaml:10:46",
    "/checkpoint": "job.yaml:4:13",
    "/checkpoint/dir": "job.yaml:4:19",
    "/checkpoint/every": "job.yaml:4:32",
    "/checkpoint/keep": "job.yaml:4:48"
  },
  "keys": {
    "/name": "job.yaml:1:7",
    "/train": "job.yaml:6:3",
    "/train/model": "job.yaml:6:3",
    "/train/data": "job.yaml:7:9",
    "/train/data/format": "job.yaml:7:10",
    "/train/data/dir": "job.yaml:7:28",
    "/train/batch": "job.yaml:8:3",
    "/train/epochs": "job.yaml:9:3",
    "/train/optimizer": "job.yaml:10:3",
    "/train/optimizer/name": "job.yaml:10:15",
    "/train/optimizer/lr": "job.yaml:10:26",
    "/train/optimizer/momentum": "job.yaml:10:36",
    "/checkpoint": "job.yaml:4:13",
    "/checkpoint/dir": "job.yaml:4:19",
    "/checkpoint/every": "job.yaml:4:32",
    "/checkpoint/keep": "job.yaml:4:48"
  }
}
'
if [[ ${1-} == rank ]]; then "rank_$((0 + OMPI_COMM_WORLD_RANK))"; fi
/opt/dlrun/bin/dlrun-train --check --ranks 2 --config /home/ann/runs/fashion-1a2b/train.json || dlrun_failed "$?" 'the check: /opt/dlrun/bin/dlrun-train --check --ranks 2 --config /home/ann/runs/fashion-1a2b/train.json'

# The ranks form one MPI world. dlrun's agents connect them; by hand it takes that MPI's own launcher.
for dlrun_launcher in mpirun.openmpi mpirun; do
  if "$dlrun_launcher" --version 2>/dev/null | grep -q 'Open MPI'; then
    ((EUID)) || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exec "$dlrun_launcher" --oversubscribe --bind-to none -n 2 bash "$dlrun_script" rank </dev/null
  fi
done
echo "dlrun: the ranks connect over Open MPI, and none of its launchers is here: mpirun.openmpi mpirun" >&2
exit 69
