#!/bin/sh
# aarch64_wheel.sh: tries the AArch64 wheel on an emulated machine with Debian 13's kernel and
# Python. There it runs `hocket doctor` and a program of two ranks. If dist has no AArch64 wheel,
# `tools/release/wheel.sh --arch aarch64` makes one.
#
# The script emulates a whole machine, because qemu's emulation of single programs lacks
# set_robust_list. Without this call, ranks that are processes do not learn that another rank has
# ended. Takes a minute or two. Needs Debian's qemu-system-arm and cpio.
set -eu
cd "$(dirname "$0")/../.."
say() { echo "aarch64_wheel: $*"; }
for tool in qemu-system-aarch64 cpio apt-get dpkg; do
  command -v "$tool" >/dev/null ||
    { say "left out: there is no $tool (Debian: qemu-system-arm cpio)"; exit 0; }
done
ls dist/hocket-*abi3*aarch64.whl >/dev/null 2>&1 || tools/release/wheel.sh --arch aarch64
wheel=$(ls -t "$PWD"/dist/hocket-*abi3*aarch64.whl | head -1)

# Unpacks Debian's packages without installing them. apt uses a package database of its own, so this
# machine's packages stay unchanged.
here=$PWD/build/aarch64-machine
root=$here/root
if [ ! -e "$here/python" ]; then
  say "getting Debian's kernel and Python"
  rm -rf "$here"
  mkdir -p "$root" "$here/apt/lists/partial" "$here/apt/archives/partial"
  : >"$here/status"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keys] http://deb.debian.org/debian trixie main" >"$here/sources"
  get="apt-get -q -y -o Dir::Etc::SourceList=$here/sources -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State=$here/apt -o Dir::State::status=$here/status -o Dir::Cache=$here/apt
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
    -o Debug::NoLocking=1 -o Acquire::Retries=3"
  # shellcheck disable=SC2086  # lists of words
  {
    $get update
    $get install --no-install-recommends --download-only linux-image-arm64 busybox-static python3 libstdc++6
  } >"$here/log" 2>&1 || { tail -5 "$here/log" >&2; exit 1; }
  for package in "$here"/apt/archives/*.deb; do
    case ${package##*/} in
      linux-image-*)
        dpkg --fsys-tarfile "$package" | tar -x -C "$here" --wildcards './boot/vmlinuz*' 2>/dev/null || true
        ;;
      *) dpkg -x "$package" "$root" ;;
    esac
  done
  for folder in lib bin sbin; do [ -e "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"; done
  (cd "$root" && ls usr/bin/python3.[0-9]* | head -1) >"$here/python"
fi
python=$(cat "$here/python")

rm -rf "$root/try"
mkdir -p "$root/try/site" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
python3 -m pip download -q --disable-pip-version-check --only-binary :all: -d "$root/try/packages" \
  --python-version "${python##*python}" --platform manylinux_2_28_aarch64 \
  --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 \
  --platform manylinux2014_aarch64 "$wheel"
for package in "$root"/try/packages/*.whl; do python3 -m zipfile -e "$package" "$root/try/site"; done
rm -r "$root/try/packages"
chmod +x "$root/try/site/hocket/bin/hocket"
cat >"$root/try/program.py" <<'END'
import numpy as np, hocket
with hocket.init() as comm:
    x = np.arange(1000.0) * (comm.rank + 1)
    comm.all_reduce(x)
    assert (x == np.arange(1000.0) * 3).all() and comm.size == 2
    print("right", flush=True)
END
cat >"$root/init" <<END
#!/usr/bin/busybox sh
b=/usr/bin/busybox
\$b mount -t proc proc /proc
\$b mount -t sysfs sys /sys
\$b mount -t devtmpfs dev /dev
\$b mkdir -p /dev/shm
\$b mount -t tmpfs shm /dev/shm
\$b ip link set lo up
export PATH=/usr/bin HOME=/tmp PYTHONPATH=/try/site NO_COLOR=1
hocket=/try/site/hocket/bin/hocket
\$b uname -rm
\$hocket doctor --short
\$hocket run -n 2 -- /$python /try/program.py && \$b echo "the job ended well"
\$b poweroff -f
END
chmod +x "$root/init"
say "starting the machine"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$here/initrd"
timeout 900 qemu-system-aarch64 -machine virt -cpu max,pauth-impdef=on -smp 2 -m 3000 -nographic \
  -nic none -no-reboot -kernel "$here"/boot/vmlinuz* -initrd "$here/initrd" \
  -append "console=ttyAMA0 quiet panic=1 rdinit=/init" </dev/null >"$here/said" 2>&1 || true
tr -d '\r' <"$here/said" | grep -v '^$'
[ "$(grep -c '\] right' "$here/said")" = 2 ] && grep -q "the job ended well" "$here/said" ||
  { say "not two ranks" >&2; exit 1; }
say "good"
