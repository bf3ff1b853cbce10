#!/bin/bash
# Job hello (hello-1a2b), node 1 of 1: laptop
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
export DLRUN_JOB_ID=hello-1a2b
export DLRUN_NODES=1
export DLRUN_RUN_DIR=/home/ann/runs/hello-1a2b
export DLRUN_SIZE=3

# One function a rank: its own environment, then its command.
rank_0() {  # worker 0
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export DLRUN_LOCAL_RANK=0
  export DLRUN_LOCAL_SIZE=3
  export DLRUN_NODE=0
  export DLRUN_RANK=0
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=0
  exec ./hello
}
rank_1() {  # worker 1
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export DLRUN_LOCAL_RANK=1
  export DLRUN_LOCAL_SIZE=3
  export DLRUN_NODE=0
  export DLRUN_RANK=1
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=1
  exec ./hello
}
rank_2() {  # worker 2
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1
  export DLRUN_LOCAL_RANK=2
  export DLRUN_LOCAL_SIZE=3
  export DLRUN_NODE=0
  export DLRUN_RANK=2
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=2
  exec ./hello
}

dlrun_script=$(realpath -- "${BASH_SOURCE[0]}")
cd -- /home/ann/jobs || dlrun_failed 74 'the working directory'
if [[ ${1-} == rank ]]; then "rank_$((0 + OMPI_COMM_WORLD_RANK))"; fi

# The ranks form one MPI world. dlrun's agents connect them; by hand it takes that MPI's own launcher.
for dlrun_launcher in mpirun.openmpi mpirun; do
  if "$dlrun_launcher" --version 2>/dev/null | grep -q 'Open MPI'; then
    ((EUID)) || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exec "$dlrun_launcher" --oversubscribe --bind-to none -n 3 bash "$dlrun_script" rank </dev/null
  fi
done
echo "dlrun: the ranks connect over Open MPI, and none of its launchers is here: mpirun.openmpi mpirun" >&2
exit 69
