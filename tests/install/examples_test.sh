#!/usr/bin/env bash
# examples_test.sh BUILD-FOLDER: every job file in share/examples can be planned; mpi-hello runs under both MPIs as its own
# comment says; fashion-mnist trains (shortened by --set, which is how one tries it).
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$(dirname "${BASH_SOURCE[0]}")/../../share/examples" "$work/the examples"
cd "$work/the examples"
dlrun=$build/bin/dlrun

fail() { echo "examples: $1" >&2 && exit 1; }

# A job for several nodes is planned for a cluster that is not there, which has to be asked for.
for job in *.yaml bench/*.yaml bench/small/*.yaml recipes/*.yaml; do
  nodes=$(sed -n 's/^resources:.*nodes: \([0-9]*\).*/--nodes \1/p' "$job")
  # shellcheck disable=SC2086 # two words or none
  plan=$("$dlrun" plan --json $nodes "$job") || fail "$job cannot be planned"
  grep -q '"schema"' <<<"$plan" || fail "$job has no plan"
done

# A recipe's global batch is divided by the ranks of the plan.
said=$("$dlrun" plan --json --nodes 8 --set resources.gpus-per-node=3 recipes/resnet50-lars.yaml 2>&1) && fail "8,192 samples on 24 ranks"
grep -q 'train.global-batch 8192 cannot be divided by 24 ranks' <<<"$said" || fail "8,192 samples on 24 ranks: $said"

for flavour in openmpi mpich; do
  "mpicc.$flavour" -o mpi-hello mpi-hello.c
  said=$("$dlrun" --quiet --run-dir "$work/hello $flavour" mpi-hello.yaml 2>&1) || fail "mpi-hello under $flavour: $said"
  grep -q 'a world of 4 ranks' <<<"$said" || fail "mpi-hello under $flavour is no world of 4: $said"
done

"$dlrun" --quiet --run-dir "$work/run" --set train.epochs=1 fashion-mnist.yaml || fail "fashion-mnist does not train"
grep -q '"test_accuracy"' "$work/run/record.json" || fail "fashion-mnist's record has no accuracy"
[[ -n $(find ckpt/fashion-mnist -name '*.safetensors') ]] || fail "fashion-mnist left no checkpoint beside the job file"
echo "every example works"
