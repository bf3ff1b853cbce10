#!/usr/bin/env bash
# completions_test.sh BUILD-FOLDER: the completions load in their shells and complete what they should.
set -euo pipefail
build=$1
completions=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../share/completions" && pwd)
export PATH="$build/bin:$PATH"
bad=0

# shellcheck source=share/completions/dlrun.bash
source "$completions/dlrun.bash"

# expect WORDS... = COMPLETIONS...: what bash offers for the last of WORDS.
expect() {
  COMP_WORDS=()
  while [[ $1 != = ]]; do COMP_WORDS+=("$1") && shift; done
  shift
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _dlrun
  local offered wanted
  offered=$(printf '%s\n' "${COMPREPLY[@]}" | sort) wanted=$(printf '%s\n' "$@" | sort)
  if [[ $offered != "$wanted" ]]; then
    printf 'bash: "%s" <TAB> offers:\n%s\nand not:\n%s\n' "${COMP_WORDS[*]}" "$offered" "$wanted" >&2
    bad=1
  fi
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir sub && touch job.yaml other.yml notes.txt

expect dlrun --fr = --framework --framework-dir
expect dlrun pl = plan
expect dlrun subm = submit
expect dlrun chain st = status stop
expect dlrun plan --sc = --scheduler --scripts
expect dlrun run --sc = --scheduler
expect dlrun --vers = --version
expect dlrun run --vers =
expect dlrun allocation --sc = --scheduler
expect dlrun --mpi pm = pmix pmi1
expect dlrun --via s = slurm ssh
expect dlrun allocation --scheduler l = local lsf
expect dlrun submit --scheduler l = lsf
expect dlrun --color a = auto always
expect dlrun plan '' = job.yaml other.yml sub
expect dlrun --framework mpie = mpiexec # asked of dlrun itself
expect dlrun frameworks bu = builtin
expect dlrun frameworks che = check
expect dlrun frameworks check j = job.yaml
expect dlrun --framework mpi -- --fr =

zsh -n "$completions/_dlrun"
# shellcheck disable=SC2016  # zsh expands it
loaded=$(zsh -f -c 'fpath=("$1" $fpath); autoload -Uz compinit; compinit -u -D; autoload +X $_comps[dlrun]; print $_comps[dlrun]' \
  zsh "$completions")
if [[ $loaded != _dlrun ]]; then echo "zsh: compinit does not load _dlrun: $loaded" >&2 && bad=1; fi
exit "$bad"
