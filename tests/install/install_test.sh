#!/usr/bin/env bash
# install_test.sh BUILD-FOLDER: installs into a prefix with a blank in its name, moves that, and uses it as a stranger
# would: from another folder, without the source tree's paths, with nothing but what was installed.
set -euo pipefail

build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "install: $1" >&2 && exit 1; }

cmake --install "$build" --prefix "$work/first place" >/dev/null
mv "$work/first place" "$work/second place"
prefix="$work/second place"

for file in bin/dlrun bin/dlrun-train share/dlrun/frameworks/mpi.yaml share/man/man1/dlrun.1 \
  share/bash-completion/completions/dlrun share/zsh/site-functions/_dlrun share/doc/dlrun/examples/fashion-mnist.yaml \
  share/dlrun/sites/perlmutter.yaml \
  share/doc/dlrun/LICENSE share/doc/dlrun/NOTICE; do
  [[ -e $prefix/$file ]] || fail "$file is not installed"
done

# Every command has a page that man finds.
for command in run plan submit chain report allocation hosts frameworks; do
  LC_ALL=C.UTF-8 man -M "$prefix/share/man" "dlrun-$command" 2>/dev/null | grep -q "^DLRUN-${command^^}(1)" ||
    fail "man finds no page dlrun-$command"
done
links=$(find "$prefix" -type l ! -exec test -e {} \; -print)
[[ -z $links ]] || fail "dangling links: $links"

cd "$work"
env -i PATH=/usr/bin:/bin HOME="$work" "$prefix/bin/dlrun" --version | grep -q '^dlrun [0-9]' ||
  fail "dlrun --version does not say its version"

# shellcheck disable=SC2016  # the rank's shell expands it
said=$(env -i PATH=/usr/bin:/bin HOME="$work" "$prefix/bin/dlrun" run --tasks-per-node 2 --run-dir "$work/run" \
  --framework plain -- bash -c 'echo "hello from ${DLRUN_RANK:-nobody}"' 2>&1) || fail "a job failed: $said"
for rank in 0 1; do
  grep -q "hello from $rank" <<<"$said" || fail "rank $rank was not heard: $said"
done
[[ -s $work/run/record.json ]] || fail "there is no record.json"
(cd "$work" && env -i PATH=/usr/bin:/bin HOME="$work" "$prefix/bin/dlrun" report run >/dev/null) || fail "no report is written"
grep -q uPlot "$work/run.html" || fail "the report has no plots"
[[ ! -e $prefix/share/dlrun/report/fetch.sh ]] || fail "fetch.sh is installed"
echo "installed, moved and used"
