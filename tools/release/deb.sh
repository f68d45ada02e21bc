#!/bin/sh
# deb.sh [SUITE]: builds Debian packages into dist/debian from the source archive and
# packaging/debian, and checks them with lintian. Then it installs the packages in a bare chroot of
# SUITE (bookworm). There it runs two ranks, and builds C++ programs against the packages. Needs
# root, the packages of tools/setup.sh, and Debian's debhelper, libopenmpi-dev, libmpich-dev,
# mmdebstrap and lintian.
set -eu
cd "$(dirname "$0")/../.."
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

if command -v lintian >/dev/null; then
  # Suppress two tags: the first upload closes no bug, and MPI's compilers compile the shims without
  # debug information.
  lintian --allow-root --fail-on error,warning \
    --suppress-tags initial-upload-closes-no-bugs,debug-file-with-no-debug-symbols \
    "$work"/hocket_"$version"-*.changes >"$work/lintian" 2>&1 || { cat "$work/lintian" >&2; exit 1; }
  say "lintian: no errors, no warnings"
else
  say "lintian is not here (Debian: lintian): left out"
fi

say "installing in a bare chroot of $suite, and building programs against it"
# The chroot gets the dependencies of the packages from Debian. One C++ program finds the library by
# pkg-config, the other by CMake. Each program runs on two ranks.
cat >"$work/try.sh" <<'END'
set -e
cd /debs
apt-get -q -y install ./*.deb
hocket doctor --short
hocket bench all_reduce -n 2 --sizes 8,4096
echo "without a compiler: good"
apt-get -q -y install --no-install-recommends g++ cmake make pkg-config
cp -r /usr/share/doc/libhocket-dev/examples /tmp/examples
cd /tmp/examples
c++ -std=c++20 all_reduce.cc $(pkg-config --cflags --libs hocket) -o by_pkg_config
hocket run -n 2 -- ./by_pkg_config
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(hello LANGUAGES CXX)
find_package(hocket 0.1 REQUIRED)
add_executable(by_cmake hello.cc)
target_link_libraries(by_cmake PRIVATE hocket::hocket)
CMAKE
cmake -B b .
cmake --build b
hocket run -n 2 -- b/by_cmake
echo "programs against it: good"
END
mkdir "$work/debs"
cp "$work"/libhocket0_*.deb "$work"/libhocket-dev_*.deb "$work"/hocket_"$version"*.deb "$work/debs/"
mmdebstrap --variant=minbase --setup-hook="cp -r $work/debs $work/try.sh \"\$1\"" \
  --customize-hook='chroot "$1" sh /try.sh' \
  "$suite" - >/dev/null 2>"$work/chroot.log" || { tail -20 "$work/chroot.log" >&2; exit 1; }
for said in "without a compiler" "programs against it"; do
  grep -q "^$said: good" "$work/chroot.log" || { tail -20 "$work/chroot.log" >&2; exit 1; }
done
say "good: $(ls dist/debian | tr '\n' ' ')"
