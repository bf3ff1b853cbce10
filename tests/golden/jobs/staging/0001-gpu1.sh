#!/bin/bash
# Job staging (staging-1a2b), node 1 of 2: gpu1
# Written by dlrun. Run by hand, `bash THIS_FILE` does this node's part of the job without dlrun and ends when
# its ranks end. dlrun's agent does `source THIS_FILE prolog` and starts the ranks itself, from the same plan.
# shellcheck disable=SC1090,SC1091  # what the prolog sources is not here to be checked
# shellcheck disable=SC2016,SC2317  # quoted values are meant as they stand; functions are called by name

dlrun_failed() {  # CODE WHAT
  echo "dlrun: gpu1: exit code $1 from $2" >&2
  exit "$1"
}

# What the job stages. dlrun's agents have copied it; by hand, files are used where they are, and archives are unpacked.
export DLRUN_STAGE=/tmp/dlrun-staged-staging-1a2b
dlrun_stage() {  # NAME FROM HOW
  { if [[ $3 == unpack ]]; then mkdir -p -- "$DLRUN_STAGE/$1" && tar -xf "$2" -C "$DLRUN_STAGE/$1"; else ln -sfn -- "$2" "$DLRUN_STAGE/$1"; fi; } ||
    dlrun_failed 69 "staging $2"
}
if [[ ${1-} != @(prolog|rank) ]]; then
  if [[ ! -d $DLRUN_STAGE ]]; then
    mkdir -m 700 -- "$DLRUN_STAGE" || dlrun_failed 69 "staging"
    echo "dlrun: gpu1: what is staged by hand stays in $DLRUN_STAGE: remove it afterwards" >&2
  fi
  dlrun_stage flowers /home/ann/jobs/flowers.tar.gz unpack
  dlrun_stage words '/project/it'\''s words' link
fi
dlrun_ended() {  # CODE: a line of the user's failed, or ended the shell
  trap - EXIT
  (($1)) && dlrun_failed "$1" "$dlrun_line"
  echo "dlrun: gpu1: the shell ended within $dlrun_line" >&2
  exit 69
}

# The prolog: once per node, before its ranks, which start in the environment that it leaves.
if [[ ${1-} != rank ]]; then
  # The user's own lines. They may end the shell, and change its options and arguments.
  dlrun_mode=${1-}
  trap 'dlrun_ended "$?"' EXIT
  dlrun_line='environment.activate: source /tmp/dlrun-staged-staging-1a2b/flowers/env/bin/activate && export VIRTUAL_ENV=/tmp/dlrun-staged-staging-1a2b/flowers/env PATH=/tmp/dlrun-staged-staging-1a2b/flowers/env/bin:"$PATH"'
  { source /tmp/dlrun-staged-staging-1a2b/flowers/env/bin/activate && export VIRTUAL_ENV=/tmp/dlrun-staged-staging-1a2b/flowers/env PATH=/tmp/dlrun-staged-staging-1a2b/flowers/env/bin:"$PATH"; } || dlrun_ended "$?"
  set +aeuC
  if [[ $(trap -p EXIT) == *dlrun_ended* ]]; then trap - EXIT; fi
  set -- "$dlrun_mode"
  unset dlrun_line dlrun_mode
fi
if [[ ${1-} == prolog ]]; then return 0; fi
set +eu  # the prolog may have set these
IFS=$' \t\n'

# What every rank of the job has in its environment.
export DLRUN_ATTEMPT=1
export DLRUN_JOB_ID=staging-1a2b
export DLRUN_NODES=2
export DLRUN_RUN_DIR=/home/ann/runs/staging-1a2b
export DLRUN_SIZE=2
export DLRUN_STAGE=/tmp/dlrun-staged-staging-1a2b
export DLRUN_STAGE_FLOWERS=/tmp/dlrun-staged-staging-1a2b/flowers
export DLRUN_STAGE_WORDS=/tmp/dlrun-staged-staging-1a2b/words
export SLURM_NNODES=2
export SLURM_NPROCS=2
export SLURM_NTASKS=2
export SLURM_NTASKS_PER_NODE=1
export SLURM_STEP_NUM_NODES=2
export SLURM_STEP_NUM_TASKS=2

# One function a rank: its own environment, then its command.
rank_0() {  # worker 0
  [[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=16
  export DLRUN_LOCAL_RANK=0
  export DLRUN_LOCAL_SIZE=1
  export DLRUN_NODE=0
  export DLRUN_RANK=0
  export DLRUN_ROLE=worker
  export DLRUN_TASK_INDEX=0
  export SLURM_LOCALID=0
  export SLURM_NODEID=0
  export SLURM_PROCID=0
  exec python train.py --data /tmp/dlrun-staged-staging-1a2b/flowers
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
        echo "dlrun: gpu1: rank $dlrun_rank ended with exit code $dlrun_value" >&2
        dlrun_stop "$dlrun_value"
      fi
      ;;
  esac
done
if [[ -n ${dlrun_killer-} ]]; then kill -- "-$dlrun_killer" 2>/dev/null; fi
exit "$dlrun_code"
