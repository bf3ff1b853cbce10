# Completion of dlrun's command line for bash. Flags and commands stand here; what is known only at run time
# (adapters) is asked of dlrun itself. tests/install compares the flags with dlrun --help.

# What may follow "dlrun COMMAND".
_dlrun_flags() {
  local common='--color --quiet --verbose --json --help'
  case $1 in
    none) echo '--version' "$(_dlrun_flags run)" ;;
    allocation) echo "--allocation --scheduler --hostfile --private-hostfile --hosts $common" ;;
    hosts) echo "--separator --unique $common" ;;
    frameworks) echo "--framework-dir $common" ;;
    submit) echo '--dry-run --chain --epochs --mtbf --measured --probe' "$(_dlrun_flags run)" ;;
    chain) echo "--now $common" ;;
    plan) echo '--scripts --explain' "$(_dlrun_flags run)" ;;
    run)
      echo '--framework --spec --link-of --name --nodes --gpus-per-node --tasks-per-node --cpus-per-task --walltime --mpi --via --retries --no-output-limit --no-progress-limit --no-bind --stage --set --run-dir' \
        '--tee --stdin --no-fold --allocation --hostfile --private-hostfile --hosts --scheduler --framework-dir' "$common"
      ;;
  esac
}

# Those that submit jobs; for other commands also those that only report an allocation.
_dlrun_schedulers() {
  echo 'slurm torque pbs lsf flux gridengine'
  if [[ $1 != submit ]]; then echo 'oar cobalt local'; fi
}

_dlrun_frameworks() {
  "${1:-dlrun}" frameworks --json 2>/dev/null |
    grep -o '"name": *"[^"]*"' | sed 's/.*"\([^"]*\)"$/\1/'
}

_dlrun() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=none word
  COMPREPLY=()

  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      --) return 0 ;; # the program's own words
      run | plan | submit | chain | allocation | hosts | frameworks) command=$word && break ;;
    esac
  done

  case $previous in
    --mpi) mapfile -t COMPREPLY < <(compgen -W 'auto pmix pmi1 native none' -- "$current") && return 0 ;;
    --via) mapfile -t COMPREPLY < <(compgen -W 'auto local slurm ssh pbs sge lsf flux mpiexec' -- "$current") && return 0 ;;
    --scheduler) mapfile -t COMPREPLY < <(compgen -W "$(_dlrun_schedulers "$command")" -- "$current") && return 0 ;;
    --color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$current") && return 0 ;;
    --framework) mapfile -t COMPREPLY < <(compgen -W "$(_dlrun_frameworks "${COMP_WORDS[0]}")" -- "$current") && return 0 ;;
    --chain) mapfile -t COMPREPLY < <(compgen -W 'auto' -- "$current") && return 0 ;;
    --run-dir | --measured | --link-of | --scripts | --framework-dir) mapfile -t COMPREPLY < <(compgen -d -- "$current") && return 0 ;;
    --allocation | --hostfile | --private-hostfile) mapfile -t COMPREPLY < <(compgen -f -- "$current") && return 0 ;;
    --nodes | --gpus-per-node | --tasks-per-node | --cpus-per-task | --walltime | --name | --set | --hosts | --retries | --tee | --stdin | --no-output-limit | --no-progress-limit | --epochs | --mtbf | --probe | --separator) return 0 ;;
    chain) mapfile -t COMPREPLY < <(compgen -W 'status stop' -- "$current") ;;
    hosts) mapfile -t COMPREPLY < <(compgen -W 'expand compress count' -- "$current") ;;
    frameworks) mapfile -t COMPREPLY < <(compgen -W "check $(_dlrun_frameworks "${COMP_WORDS[0]}")" -- "$current") ;;
    check) [[ $command != frameworks ]] || mapfile -t COMPREPLY < <(compgen -d -- "$current" || true; compgen -f -X '!*.yaml' -- "$current" || true) ;;
  esac

  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_dlrun_flags "$command")" -- "$current")
  elif [[ $command != allocation && $command != hosts && $command != chain && $command != frameworks ]]; then
    mapfile -t COMPREPLY < <(
      compgen -d -- "$current" || true # nothing to offer is no failure
      compgen -f -X '!*.yaml' -- "$current" || true
      compgen -f -X '!*.yml' -- "$current" || true
      if ((COMP_CWORD == 1)); then compgen -W 'run plan submit chain allocation hosts frameworks' -- "$current" || true; fi
    )
  fi
}

complete -o filenames -F _dlrun dlrun
