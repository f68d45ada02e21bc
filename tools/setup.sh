#!/bin/sh
# setup.sh [--no-tests] [--peers] [--aarch64] [--daemons]
#
# Installs the packages for building and testing that this machine lacks. These are Debian packages,
# as root or with sudo, and a Python virtual environment in .venv. If nothing is missing, the script
# takes a moment and needs no rights.
#   --no-tests  do not install the packages that only tests need
#   --peers     also install the libraries that `hocket bench --compare` measures
#   --aarch64   also install the compiler and the emulator of tools/check/aarch64.sh
#   --daemons   also install sshd and Slurm, which tests of many hosts start. Without systemd they
#               are installed anyway. With systemd, installing them would start them permanently,
#               so there they need this option.
set -eu
cd "$(dirname "$0")/.."

packages="
  g++ cmake ninja-build ccache pkg-config
  libssl-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
  libeigen3-dev libhwy-dev
  python3 python3-dev python3-venv"
for_tests="libgtest-dev librapidcheck-dev libbenchmark-dev libucx0"
# Optional packages: Clang for the fuzz targets, Spin for the models, Relacy for the lock-free code,
# a Fortran compiler for hocket's Fortran module, mmdebstrap for the wheel in a bare Debian, an MPI,
# and iproute2 for a network of several hosts. libopenblas0-serial is the BLAS that is hardest to
# call from several threads.
welcome="clang libclang-rt-dev spin relacy-dev gfortran mmdebstrap libopenblas0-serial
  openmpi-bin libopenmpi-dev iproute2 openssh-client"
daemons="openssh-server slurmctld slurmd slurm-client"
[ -d /run/systemd/system ] || welcome="$welcome $daemons"
peers=
for argument in "$@"; do
  case $argument in
    --no-tests) for_tests='' welcome='' ;;
    --peers)
      packages="$packages openmpi-bin libopenmpi-dev mpich libmpich-dev libfftw3-dev"
      packages="$packages libfftw3-mpi-dev libscalapack-openmpi-dev"
      peers="openmpi5 mpich5 impi"  # complete MPIs as wheels, each in a folder of .peers
      ;;
    --daemons) welcome="$welcome $daemons" ;;
    --aarch64) packages="$packages g++-aarch64-linux-gnu qemu-user" ;;
    *)
      echo "setup: unknown argument $argument; usage: tools/setup.sh [--no-tests] [--peers]" \
        "[--aarch64] [--daemons]" >&2
      exit 2
      ;;
  esac
done

say() { echo "setup: $*"; }

# missing PACKAGE...: prints the packages that are not installed.
missing() {
  for package in "$@"; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || state=
    [ "$state" = installed ] || printf '%s ' "$package"
  done
}

# quietly COMMAND...: runs the command without output. If it fails, shows the output and exits.
quietly() {
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
  else
    cat "$log" >&2
    rm -f "$log"
    say "failed: $*" >&2
    exit 1
  fi
}

# install PACKAGE...: installs the packages by apt, as root or with sudo.
install() {
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    if ! command -v sudo >/dev/null; then
      say "this is neither root nor is there sudo; as root: apt-get update && apt-get install $*" >&2
      exit 1
    fi
  fi
  apt_get="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3"
  # shellcheck disable=SC2086  # a list of words
  quietly $apt_get update
  # shellcheck disable=SC2086
  quietly $apt_get install --no-install-recommends "$@"
}

# True if apt can install packages without asking the user for a password.
may_install() { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  # shellcheck disable=SC2086  # lists of words, throughout
  required=$(missing $packages $for_tests)
  # shellcheck disable=SC2086
  wanted=$(missing $welcome)
  if [ -n "$required" ]; then
    say "installing by apt: $required"
    # shellcheck disable=SC2086
    install $required
  fi
  if [ -n "$wanted" ] && may_install; then
    say "installing by apt, where possible: $wanted"
    # shellcheck disable=SC2086
    (install $wanted) 2>/dev/null || say "went on without: $wanted"
  fi
else
  # shellcheck disable=SC2086  # a list of words
  say "no apt here; these Debian packages, or their like, must be in place:" $packages $for_tests
fi

# Prints a Python that can make a virtual environment and compile extensions. The system's Python
# comes first, because its headers are among the packages above.
able_python() {
  for python in /usr/bin/python3 python3; do
    if "$python" - 2>/dev/null <<'END'; then echo "$python"; return; fi
import ensurepip, os, ssl, sys, sysconfig, venv
assert sys.version_info >= (3, 9)
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
END
  done
  say "no python3 here is 3.9 or later with venv, ssl and its headers (python3-venv, python3-dev)" >&2
  exit 1
}

# True if this script has made .venv completely, and .venv still works. Its interpreter must run,
# and must be the one that made .venv. It must be able to install packages and to compile
# extensions.
stamp=.venv/requirements.txt
venv_works() {
  [ -e "$stamp" ] && .venv/bin/python - 2>/dev/null <<'END'
import os, pip, re, ssl, sys, sysconfig
home = re.search(r"^home = (.*)$", open(".venv/pyvenv.cfg").read(), re.M)[1]
assert os.path.samefile(sys.executable, os.path.join(home, "python3"))
assert os.path.samefile(sys.prefix, ".venv") and sys.version_info >= (3, 9)
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
END
}

# True if .venv has all the required packages: an earlier run installed them for the present
# requirements file, and they are still installed.
venv_is_complete() {
  cmp -s tools/requirements.txt "$stamp" && .venv/bin/python - 2>/dev/null <<'END'
import importlib.metadata, re
for line in open("tools/requirements.txt"):
    if not line.startswith("#"):
        importlib.metadata.version(re.match(r"[\w.-]+", line)[0])
END
}

if ! venv_works; then
  say "making the Python environment .venv"
  python=$(able_python)
  rm -rf .venv
  quietly "$python" -m venv .venv
fi
if ! venv_is_complete; then
  say "installing Python packages into .venv"
  quietly .venv/bin/python -m pip install --disable-pip-version-check -r tools/requirements.txt
  cp tools/requirements.txt "$stamp"
fi
for peer in $peers; do
  [ -e ".peers/$peer/bin/mpicxx" ] && continue
  wheels="${peer%5}>=5,<6"
  [ "$peer" = impi ] && wheels="impi-rt impi-devel"  # one package to run with, one to compile with
  say "installing $wheels into .peers/$peer, where possible"
  # shellcheck disable=SC2086  # a list of words
  (quietly .venv/bin/python -m pip install --disable-pip-version-check --no-deps \
    --prefix ".peers/$peer" $wheels) 2>/dev/null || say "went on without: $peer"
done
say "everything is in place"
