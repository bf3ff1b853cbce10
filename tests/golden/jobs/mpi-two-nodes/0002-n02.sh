#!/bin/bash
# Job hello (hello-1a2b), node 2 of 2: n02
# Written by dlrun. Run by hand, `bash THIS_FILE` does this node's part of the job without dlrun and ends when
# its ranks end. dlrun's agent does `source THIS_FILE prolog` and starts the ranks itself, from the same plan.
# shellcheck disable=SC1090,SC1091  # what the prolog sources is not here to be checked
# shellcheck disable=SC2016,SC2317  # quoted values are meant as they stand; functions are called by name

dlrun_failed() {  # CODE WHAT
  echo "dlrun: n02: exit code $1 from $2" >&2
  exit "$1"
}
if [[ ${1-} == prolog ]]; then return 0; fi
set +eu  # the prolog may have set these
IFS=$' \t\n'

# What every rank of the job has in its environment.
export DLRUN_ATTEMPT=1
export DLRUN_JOB_ID=hello-1a2b
export DLRUN_NODES=2
export DLRUN_RUN_DIR=/home/ann/runs/hello-1a2b
export DLRUN_SIZE=2

# One function a rank: its own environment, then its command.
rank_1() {  # worker 1
  export DLRUN_LOCAL_RANK=0
  export DLRUN_LOCAL_SIZE=1
  export DLRUN_NODE=1
  export DLRUN_RANK=1
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=1
  exec ./hello
}

cd -- /home/ann/jobs || dlrun_failed 74 'the working directory'
if [[ ${1-} == rank ]]; then "rank_$((1 + PMI_RANK))"; fi

# The ranks form one MPI world. dlrun's agents connect them; by hand it takes that MPI's own launcher.
echo "dlrun: the ranks of this job are on 2 nodes and connect over MPI: start it with dlrun" >&2
exit 69
