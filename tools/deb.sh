#!/bin/sh
# deb.sh [SUITE]: builds Debian packages from the source archive by packaging/debian into dist/debian,
# and installs them in a bare chroot of SUITE (bookworm), where two ranks run. Needs what
# tools/setup.sh installs, root, and Debian's debhelper, build, libopenmpi-dev, libmpich-dev, mmdebstrap.
set -eu
cd "$(dirname "$0")/.."
suite=${1:-bookworm}
work=$PWD/build/deb
rm -rf "$work"
mkdir -p "$work" dist/debian
say() { echo "deb: $*"; }

say "making the source archive"
.venv/bin/python -c 'import sys; from scikit_build_core.build import build_sdist
build_sdist(sys.argv[1])' "$work" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
archive=$(find "$work" -name 'hocket-*.tar.gz')
version=${archive##*/hocket-}
version=${version%.tar.gz}
mv "$archive" "$work/hocket_$version.orig.tar.gz"
mkdir "$work/hocket"
tar -xf "$work/hocket_$version.orig.tar.gz" -C "$work/hocket" --strip-components=1
cp -r packaging/debian "$work/hocket/"

say "building (build/deb/log)"
if command -v ccache >/dev/null; then
  CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CMAKE_CXX_COMPILER_LAUNCHER
fi
(cd "$work/hocket" && dpkg-buildpackage -b -us -uc) >"$work/log" 2>&1 ||
  { tail -30 "$work/log" >&2; exit 1; }
cp "$work"/*.deb dist/debian/

say "installing in a bare chroot of $suite"
# The chroot gets what the packages depend on from Debian; both ranks are the benchmark's.
mmdebstrap --quiet --variant=minbase \
  --setup-hook='mkdir -p "$1/debs"' --setup-hook="copy-in $work/libhocket0_*.deb /debs" \
  --setup-hook="copy-in $work/hocket_${version}*.deb /debs" \
  --customize-hook='chroot "$1" sh -c "apt-get -q -y install /debs/*.deb"' \
  --customize-hook='chroot "$1" hocket doctor --short' \
  --customize-hook='chroot "$1" hocket bench all_reduce -n 2 --sizes 8,4096' \
  "$suite" - >/dev/null 2>"$work/chroot.log" || { tail -20 "$work/chroot.log" >&2; exit 1; }
say "good: $(ls dist/debian | tr '\n' ' ')"
