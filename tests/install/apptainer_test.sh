#!/usr/bin/env bash
# apptainer_test.sh ARCHIVE: builds the image of share/packaging/container/dlrun.def from the tarball by the Apptainer of Debian's
# unstable suite (sid), the only one that has it, and trains in it with two ranks as a user without rights. The image's base is a bare
# root of Debian 12 in place of the one that the definition fetches. Needs root, for the roots.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=$tree/share/packaging/suite.sh
archive=$(realpath "$1")
fail() { echo "apptainer: $1" >&2 && exit 1; }
share=$(mktemp -d)
trap 'rm -rf "$share"' EXIT
chmod 755 "$share"

base=$("$suite" root bookworm bare)
tar --extract --file "$archive" --directory "$share"
mv "$share"/dlrun-* "$share/dlrun"
mkdir "$share/base"
tar --create --directory "$base" --exclude './dev/*' --exclude './proc/*' --exclude './sys/*' . | tar --extract --directory "$share/base"
sed 's|^Bootstrap: .*|Bootstrap: localimage|; s|^From: .*|From: /share/base|' "$tree/share/packaging/container/dlrun.def" >"$share/dlrun.def"
"$tree/tests/install/small_mnist.py" /usr/share/datasets/fashion-mnist "$share/data"
cp "$tree/tests/install/small.yaml" "$share/job.yaml"
cat >"$share/in_root.sh" <<'END'
set -e
cd /share
apptainer build dlrun.sif dlrun.def >/tmp/log 2>&1 || { cat /tmp/log && exit 1; }
echo 'user:x:1000:1000::/home/user:/bin/bash' >>/etc/passwd
mkdir -p /home/user
chown 1000:1000 /home/user
cd /home/user
setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/user USER=user bash -c '
  in_image() { apptainer "$1" --unsquash --bind /share /share/dlrun.sif "${@:2}" 2>log || { cat log && exit 1; }; }
  in_image exec dlrun --version | head -1
  in_image run --run-dir run --set checkpoint.dir=/home/user/ckpt /share/job.yaml
  grep -q "^dlrun: done" log || { cat log && exit 1; }
  apptainer --version'
END
said=$(SUITE_SHARE=$share "$suite" run sid apptainer bash /share/in_root.sh 2>&1) || fail "$said"
echo "image: built and run by $(tail -1 <<<"$said"): $(grep -m1 '^dlrun ' <<<"$said"), a training of 2 ranks"
