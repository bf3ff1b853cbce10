# Completion of dlrun's command line for bash. Commands, flags and their values are asked of dlrun itself:
# `dlrun complete` prints its commands, `dlrun complete COMMAND` the flags of one, a row each.

_dlrun_rows() {
  "${COMP_WORDS[0]:-dlrun}" complete "$@" 2>/dev/null
}

# Before a command is named, the flags of `dlrun run` may follow.
_dlrun_flags() {
  if [[ $1 == none ]]; then echo '--version'; fi
  _dlrun_rows "${1/#none/run}" | cut -f 1
}

_dlrun_frameworks() {
  "${COMP_WORDS[0]:-dlrun}" frameworks --json 2>/dev/null |
    grep -o '"name": *"[^"]*"' | sed 's/.*"\([^"]*\)"$/\1/'
}

# compgen's exit status is 1 where it has nothing to offer, which is no failure.
_dlrun_offer() {
  mapfile -t COMPREPLY < <(compgen "$@" -- "${COMP_WORDS[COMP_CWORD]}" || true)
}

# What may follow a flag, from the name of its value and its usual values.
_dlrun_value() {
  case $1 in
    FRAMEWORK) _dlrun_offer -W "$(_dlrun_frameworks)" ;;
    FILE) _dlrun_offer -f ;;
    DIR | RUN) _dlrun_offer -d ;;
    *) if [[ $2 != - ]]; then _dlrun_offer -W "$2"; fi ;;
  esac
}

_dlrun_job_files() {
  local current=${COMP_WORDS[COMP_CWORD]}
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
    compgen -d -- "$current" || true
    compgen -f -X '!*.yaml' -- "$current" || true
    compgen -f -X '!*.yml' -- "$current" || true
  )
}

_dlrun() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=none word commands value choices
  COMPREPLY=()
  commands=" $(_dlrun_rows | cut -f 1 | tr '\n' ' ')"

  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      --) return 0 ;; # the program's own arguments
      -*) ;;
      *) if [[ $commands == *" $word "* ]]; then command=$word && break; fi ;;
    esac
  done

  if [[ $previous == -* ]]; then
    IFS=$'\t' read -r value choices < <(_dlrun_rows "${command/#none/run}" | awk -F '\t' -v flag="$previous" '$1 == flag || $2 == flag { print $3 "\t" $4 }')
    if [[ ${value:--} != - ]]; then _dlrun_value "$value" "$choices" && return 0; fi
  fi

  case $command,$previous,$current in
    *,*,-*) _dlrun_offer -W "$(_dlrun_flags "$command")" ;;
    chain,chain,*) _dlrun_offer -W 'status stop' ;;
    hosts,hosts,*) _dlrun_offer -W 'expand compress count' ;;
    frameworks,frameworks,*) _dlrun_offer -W "check $(_dlrun_frameworks)" ;;
    frameworks,check,*) _dlrun_job_files ;;
    chain,status,* | chain,stop,*) _dlrun_offer -d ;;
    doctor,* | allocation,* | hosts,* | chain,* | frameworks,*) ;;
    *)
      if ((COMP_CWORD == 1)); then _dlrun_offer -W "$commands"; fi
      _dlrun_job_files
      ;;
  esac
}

complete -o filenames -F _dlrun dlrun
