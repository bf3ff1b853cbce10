#!/usr/bin/env bash
# image_test.sh ARCHIVE: builds the image of share/packaging/container by Charliecloud, from the tarball and a bare root of Debian 12,
# and trains in it with two ranks. Needs root, for the root, and python3-lark, for ch-image; no network beyond that of suite.sh.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
archive=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CH_IMAGE_STORAGE=$work/storage USER=${USER:-root} PATH=/usr/sbin:/usr/bin:/sbin:/bin # Debian's own Python
fail() { echo "image: $1" >&2 && exit 1; }

root=$("$tree/share/packaging/suite.sh" root bookworm bare)
mkdir "$work/context" "$work/share"
tar --extract --file "$archive" --directory "$work/context"
mv "$work"/context/dlrun-* "$work/context/dlrun"
"$tree/tests/install/small_mnist.py" /usr/share/datasets/fashion-mnist "$work/share/data"
cp "$tree/tests/install/small.yaml" "$work/share/job.yaml"
tar --create --file "$work/base.tar" --directory "$root" --exclude './dev/*' --exclude './proc/*' --exclude './sys/*' .
build() {
  ch-image import "$work/base.tar" debian:bookworm-slim && rm "$work/base.tar" &&
    ch-image build -t dlrun -f "$tree/share/packaging/container/Dockerfile" "$work/context" &&
    ch-convert -o dir dlrun "$work/image" && mkdir -p "$work/image/share"
}
build >"$work/log" 2>&1 || fail "it was not built: $(cat "$work/log")"
ch-run --write --bind="$work/share:/share" --cd=/share "$work/image" -- /opt/dlrun/bin/dlrun --version >"$work/version"
ch-run --write --bind="$work/share:/share" --cd=/share "$work/image" -- /opt/dlrun/bin/dlrun --run-dir run job.yaml >"$work/log" 2>&1 ||
  fail "the training failed: $(cat "$work/log")"
grep -q '^dlrun: done' "$work/log" || fail "the training did not end: $(cat "$work/log")"
echo "image: built and run by Charliecloud $(ch-run --version 2>&1): $(head -1 "$work/version"), a training of 2 ranks"
