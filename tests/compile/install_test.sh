#!/bin/sh
# install_test.sh BUILD_DIR CXX GENERATOR
#
# Installs a build into a folder of its own, moves that away (nothing may depend on where it was
# installed first), and builds and runs outside programs against it: by find_package, and by
# pkg-config, there in C and Fortran too; and programs of MPI. Kernels on the installed headers are
# compiled only.
set -eu
build=$1 cxx=$2 generator=$3
source=$(cd "$(dirname "$0")/outside" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" >"$work/install.log" ||
  { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/prefix"

echo "headers, with what the build makes of them"
cp -r "$source/../../../include/hocket" "$work/headers"
if [ -f "$build/include/hocket/hocket.f90" ]; then
  cp "$build/include/hocket/hocket.f90" "$work/headers"
fi
diff -r "$work/headers" "$work/prefix/include/hocket"

nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc || true)
if [ -n "$nvcc" ]; then
  echo "in CUDA C++"
  "$nvcc" -std=c++20 -I"$work/prefix/include" -c "$source/kernel.cu" -o "$work/kernel.o"
else
  echo "nvcc: not found, skipped"
fi

echo "by find_package"
cmake -G "$generator" -S "$source" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/cmake"
"$work/cmake/outside"

if command -v pkg-config >/dev/null; then
  echo "by pkg-config"
  pc=$(find "$work/prefix" -name hocket.pc)
  PKG_CONFIG_PATH=$(dirname "$pc")
  export PKG_CONFIG_PATH
  # shellcheck disable=SC2046  # flags are words
  "$cxx" -std=c++20 "$source/main.cc" -o "$work/outside" $(pkg-config --cflags --libs hocket)
  "$work/outside"
  echo "in C"
  examples=$source/../../../examples
  # shellcheck disable=SC2046
  cc -std=c11 "$examples/all_reduce_in_c.c" $(pkg-config --cflags --libs hocket) -o "$work/in_c"
  "$work/in_c"
  if ! command -v gfortran >/dev/null; then
    echo "gfortran: not found, skipped"
  elif [ -f "$work/headers/hocket.f90" ]; then
    echo "in Fortran"
    prefix=$(pkg-config --variable=includedir hocket)
    # shellcheck disable=SC2046
    gfortran -J"$work" "$prefix/hocket/hocket.f90" "$examples/all_reduce.f90" \
      $(pkg-config --libs hocket) -o "$work/in_fortran"
    "$work/in_fortran"
  fi
else
  echo "pkg-config: not found, skipped"
fi

if [ -x "$work/prefix/bin/hocket-mpicc" ]; then
  echo "programs of MPI"
  "$source/../../mpi_face/build_test.sh" "$work/prefix" "$generator"
fi

"$work/prefix/bin/hocket" --version
