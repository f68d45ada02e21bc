#!/bin/sh
# prepare.sh ARCH ZIG: fills build/manylinux/ARCH with the tools that tools/release/wheel.sh uses.
# One is a compiler for glibc 2.28, see cxx.sh. This compiler builds the others from Debian's
# sources: the libraries that become part of hocket.
#
# Needs Debian 12 with GCC (for another ARCH: g++-ARCH-linux-gnu), and the packages of
# tools/setup.sh, whose headers it uses. ZIG is the path of the Zig compiler, which makes the
# stand-ins for old versions of the C library.
set -eu
cd "$(dirname "$0")/../../.."
ARCH=$1 ZIG=$2
case $ARCH in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *) echo "prepare: unknown architecture $ARCH; there are x86_64 and aarch64" >&2; exit 2 ;;
esac
here=$PWD/build/manylinux/$ARCH
version="2 $(cksum tools/release/manylinux/* | cksum)"
[ "$(cat "$here/stamp" 2>/dev/null)" = "$version" ] && exit 0
say() { echo "manylinux: $*"; }

rm -rf "$here"
mkdir -p "$here/bin" "$here/lib" "$here/root" "$here/apt/lists/partial" "$here/apt/parts" \
  "$here/sources" "$here/debs" "$here/prefix"

# Lets apt use a package database of its own. It downloads packages and their sources from the
# servers that this machine's lists name.
cp /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list "$here/apt/parts" 2>/dev/null || true
[ ! -s /etc/apt/sources.list ] || cp /etc/apt/sources.list "$here/apt/parts/main.list"
sed -i 's/^Types: deb$/Types: deb deb-src/' "$here"/apt/parts/*.sources 2>/dev/null || true
sed -i 's/^deb \(.*\)/deb \1\ndeb-src \1/' "$here"/apt/parts/*.list 2>/dev/null || true
: >"$here/apt/status"
get="apt-get -q -y -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$here/apt/parts
  -o Dir::State=$here/apt -o Dir::State::status=$here/apt/status -o Dir::Cache=$here/apt
  -o APT::Architecture=$debian -o APT::Architectures=$debian -o APT::Sandbox::User=root
  -o Debug::NoLocking=1 -o Acquire::Retries=3"
say "getting Debian's libraries for $ARCH, and sources"
# shellcheck disable=SC2086  # lists of words
{
  $get update || true  # the packages may not need the list that failed
  (cd "$here/debs" && $get download libssl-dev libstdc++-12-dev libgcc-12-dev libstdc++6 libgcc-s1 \
    libpython3.11-dev)
  (cd "$here/sources" && $get source --download-only fmtlib spdlog highway)
} >"$here/log" 2>&1 || { tail -20 "$here/log" >&2; exit 1; }
for package in "$here"/debs/*.deb; do dpkg -x "$package" "$here/root"; done

# The compiler: cc and c++ are scripts that call cxx.sh.
libraries=$here/root/usr/lib/gcc/$ARCH-linux-gnu/12
[ -d "$libraries" ] || libraries=$here/root/usr/lib/gcc-cross/$ARCH-linux-gnu/12
{ echo "GCC=$ARCH-linux-gnu-g++"; echo "LIBRARIES=$libraries"; } >"$here/settings"
for language in cc c++; do
  printf '#!/bin/sh\nexec %s %s %s "$@"\n' "$PWD/tools/release/manylinux/cxx.sh" "$language" "$here" \
    >"$here/bin/$language"
  chmod +x "$here/bin/$language"
done

# Stand-ins for the libraries that the compiler links against.
say "making old libraries' stand-ins"
zig() { ZIG_GLOBAL_CACHE_DIR=$here/zig "$ZIG" cc -target "$ARCH-linux-gnu.2.28" "$@"; }
echo 'int main(void) { return 0; }' >"$here/empty.c"
zig -fPIE -pie "$here/empty.c" -o "$here/empty"
for file in Scrt1.o libc_nonshared.a libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 \
  libld.so.2; do
  cp "$(find "$here/zig" -name "$file" | head -1)" "$here/lib/"
done
# stand_in LIBRARY NEWEST: makes a stand-in for Debian's LIBRARY. It has the symbols up to the
# versions NEWEST, the limits of manylinux_2_28.
stand_in() {
  soname=${1##*/}
  name=${soname%%.so*}
  python3 tools/release/manylinux/stub_library.py "$here/root/$1" "$2" "$here/lib/$name"
  zig -shared -nostdlib "-Wl,-soname,$soname" "-Wl,--version-script=$here/lib/$name.map" \
    "$here/lib/$name.s" -o "$here/lib/$name.so"
}
stand_in "usr/lib/$ARCH-linux-gnu/libstdc++.so.6" GLIBCXX_3.4.24,CXXABI_1.3.11
stand_in "lib/$ARCH-linux-gnu/libgcc_s.so.1" GCC_7.0.0
for name in compat environ; do
  "$here/bin/cc" -fPIC -O2 -c "tools/release/manylinux/$name.c" -o "$here/lib/$name.o"
done

# OpenSSL's headers differ between processors, and so do the headers of Debian's Python.
headers=/usr/include
if [ "$ARCH" != "$(uname -m)" ]; then
  headers=$here/openssl
  mkdir "$headers"
  cp -r "$here/root/usr/include/openssl" "$headers/"
  cp -r "$here/root/usr/include/$ARCH-linux-gnu/openssl/." "$headers/openssl/"
  mkdir -p "$here/python/$ARCH-linux-gnu"
  cp -r "$here/root/usr/include/$ARCH-linux-gnu/python3.11" "$here/python/$ARCH-linux-gnu/"
fi
cat >"$here/toolchain.cmake" <<END
set(CMAKE_C_COMPILER $here/bin/cc)
set(CMAKE_CXX_COMPILER $here/bin/c++)
set(CMAKE_PREFIX_PATH $here/prefix)
set(HOCKET_STATIC_CXX_RUNTIME ON)
set(OPENSSL_INCLUDE_DIR $headers CACHE PATH "")
set(OPENSSL_CRYPTO_LIBRARY $here/root/usr/lib/$ARCH-linux-gnu/libcrypto.a CACHE FILEPATH "")
set(OPENSSL_SSL_LIBRARY $here/root/usr/lib/$ARCH-linux-gnu/libssl.a CACHE FILEPATH "")
END
[ "$ARCH" = "$(uname -m)" ] || cat >>"$here/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ARCH)
set(HOCKET_PYCONFIG $here/python CACHE PATH "")
END

launcher=
if command -v ccache >/dev/null; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
# version_of NAME: prints the version of Debian's source NAME without the suffix that Debian adds.
version_of() {
  file=$(basename "$here"/sources/"$1"_*.orig.tar.*)
  file=${file#"$1"_}
  expr "$file" : '\([0-9.]*[0-9]\)'
}
# library NAME OPTION...: builds the static library NAME from Debian's sources, and installs it into
# the prefix.
library() {
  name=$1
  shift
  say "building $name"
  mkdir "$here/sources/$name"
  tar -xf "$here"/sources/"$name"_*.orig.tar.* -C "$here/sources/$name" --strip-components=1
  {
    cmake -G Ninja -S "$here/sources/$name" -B "$here/sources/$name/build" $launcher \
      -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
      -DCMAKE_INSTALL_PREFIX="$here/prefix" -DCMAKE_INSTALL_LIBDIR=lib "$@"
    cmake --build "$here/sources/$name/build"
    cmake --install "$here/sources/$name/build"
  } >"$here/sources/$name.log" 2>&1 || { tail -40 "$here/sources/$name.log" >&2; exit 1; }
}
library fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF
library spdlog -DSPDLOG_FMT_EXTERNAL=ON -DSPDLOG_BUILD_EXAMPLE=OFF -DSPDLOG_BUILD_TESTS=OFF
library highway -DBUILD_TESTING=OFF -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF \
  -DHWY_ENABLE_CONTRIB=OFF

# package NAME SOURCE TARGET ARCHIVE [DEFINITIONS [LINKS]]: writes the files by which CMake finds
# the library. The headers are this system's, which come from the same sources. Because of the same
# headers, ccache reuses the objects of the ordinary build.
package() {
  rm -rf "$here/prefix/lib/cmake/$1"
  mkdir -p "$here/prefix/lib/cmake/$1"
  printf 'set(PACKAGE_VERSION %s)\n' "$(version_of "$2")" >"$here/prefix/lib/cmake/$1/$1-config-version.cmake"
  cat >"$here/prefix/lib/cmake/$1/$1-config.cmake" <<END
if(NOT TARGET $3)
  add_library($3 STATIC IMPORTED GLOBAL)
  set_target_properties($3 PROPERTIES IMPORTED_LOCATION $here/prefix/lib/$4
    INTERFACE_COMPILE_DEFINITIONS "${5-}" INTERFACE_LINK_LIBRARIES "${6-}")
endif()
END
}
package fmt fmtlib fmt::fmt libfmt.a FMT_SHARED
package spdlog spdlog spdlog::spdlog libspdlog.a \
  "SPDLOG_SHARED_LIB;SPDLOG_COMPILED_LIB;SPDLOG_FMT_EXTERNAL" fmt::fmt
package hwy highway hwy::hwy libhwy.a HWY_SHARED_DEFINE
rm -rf "$here/prefix/include"
echo "$version" >"$here/stamp"
