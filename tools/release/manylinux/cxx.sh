#!/bin/sh
# cxx.sh LANGUAGE FOLDER ARGUMENT...: calls GCC as c++ or cc, such that the result runs with glibc
# 2.28 or later. tools/release/manylinux/prepare.sh has filled FOLDER.
#
# Object files contain no symbol versions: the linker adds them. So GCC compiles as usual, and only
# links differently: against stand-ins, which have the symbols of old libraries. The linker looks
# for a symbol in this order:
#   1. libstdc++.so   the stand-in: the symbols of the old libstdc++, so that hocket shares the
#                     process's one libstdc++
#   2. libstdc++.a    the symbols that the old libstdc++ lacks
#   3. compat.o       the functions that glibc 2.28 lacks, from compat.c
# A symbol that is in none of the libraries is a link error.
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
