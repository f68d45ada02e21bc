#!/bin/sh
# cxx.sh LANGUAGE FOLDER ARGUMENT...: GCC, as c++ or cc, for what runs where glibc is 2.28 or later.
# FOLDER is what tools/release/manylinux/prepare.sh has filled.
#
# Objects have no symbol versions: they get them from the linker. So GCC compiles as usual, and links
# against stand-ins that have the symbols of old libraries. First comes the one for libstdc++.so, then
# libstdc++.a for symbols that the old one lacks, so that a process has one libstdc++, not two; then
# compat.c. A symbol that none of them has is an error.
set -eu
language=$1 here=$2
shift 2
# shellcheck disable=SC1091  # made by prepare.sh
. "$here/settings"  # GCC, LIBRARIES: its folder
compiler=$GCC
[ "$language" = cc ] && compiler=${GCC%g++}gcc

shared=
for argument in "$@"; do
  case $argument in
    -c | -E | -S | -M | -MM | -fsyntax-only | --version | -v | -dump* | -print-*)
      exec "$compiler" "$@"
      ;;
    -shared) shared=1 ;;
  esac
done
lib=$here/lib
start="$lib/Scrt1.o $LIBRARIES/crtbeginS.o $lib/environ.o"
[ -z "$shared" ] || start=$LIBRARIES/crtbeginS.o
# shellcheck disable=SC2086  # lists of words
exec "$compiler" -nostdlib -Wl,--exclude-libs,ALL -Wl,--as-needed $start "$@" \
  "$lib/libstdc++.so" "$LIBRARIES/libstdc++.a" "$lib/libgcc_s.so" "$LIBRARIES/libgcc.a" \
  "$lib/compat.o" "$lib/libpthread.so.0" "$lib/libdl.so.2" "$lib/librt.so.1" "$lib/libm.so.6" \
  "$lib/libc.so.6" "$lib/libc_nonshared.a" "$lib/libld.so.2" "$LIBRARIES/crtendS.o"
