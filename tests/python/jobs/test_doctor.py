"""`hocket doctor`, `key`, `store`, `version`."""

import json
import os
import pathlib
import platform
import re
import resource
import signal
import socket
import stat
import subprocess
import time

import hocket_command
import pytest
from hocket_command import ROOT, WATCHDOG


def report(*options, **settings):
    done = hocket_command.run("doctor", "--json", *options, **settings)
    return done, json.loads(done.stdout)


def test_json_tells_this_machine():
    done, machine = report()
    assert done.stderr == ""
    processors = machine["processors"]
    assert processors["allowed"] == len(os.sched_getaffinity(0))
    assert 1 <= processors["cores"] <= processors["allowed"] <= processors["online"]
    page = os.sysconf("SC_PAGESIZE")
    assert machine["memory"]["total"] == pytest.approx(os.sysconf("SC_PHYS_PAGES") * page, rel=0.01)
    assert {"engines", "features", "interfaces", "libraries", "problems"} <= set(machine)
    assert {engine["name"] for engine in machine["engines"]} >= {"local", "shm"}
    assert any(interface["loopback"] for interface in machine["interfaces"])
    for problem in machine["problems"]:
        assert problem["what"] and problem["mend"]
    stops = any(problem["stops_hocket"] for problem in machine["problems"])
    assert done.returncode == (1 if stops else 0)


def test_closed_descriptors_are_no_matter():
    # Pipes to the processes that try things get their numbers.
    done = subprocess.run(
        ["sh", "-c", 'exec "$1" doctor --json <&- 2>&-', "sh", hocket_command.find()],
        stdout=subprocess.PIPE,
        timeout=WATCHDOG,
        check=False,
    )
    usual, machine = report()
    assert done.returncode == usual.returncode
    closed = json.loads(done.stdout)
    assert closed["features"] == machine["features"]
    assert closed["libraries"] == machine["libraries"]


def test_features_are_tried():
    _, machine = report()
    features = {feature["name"]: feature for feature in machine["features"]}
    for name in ("sealed memfd", "descriptor passing", "robust mutex", "wipe on fork"):
        assert features[name]["required"]
        assert features[name]["works"], features[name]["error"]
    for name in ("futex_waitv", "membarrier", "pidfd"):
        assert not features[name]["required"]


def test_a_limit_that_stops_hocket_is_told_with_its_mend():
    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done, machine = report(preexec_fn=limit_files)
    assert done.returncode == 1
    stopping = [problem for problem in machine["problems"] if problem["stops_hocket"]]
    assert "large segment" in stopping[0]["what"]
    assert "ulimit" in stopping[0]["mend"]
    assert not any(engine["available"] for engine in machine["engines"] if engine["name"] == "shm")
    assert "cannot work here" in hocket_command.run(
        "doctor", "--short", preexec_fn=limit_files
    ).stdout  # fmt: skip


def test_core_dumps_are_told():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("core dumps cannot be switched on here")
    _, machine = report(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
    assert any("core dump" in problem["what"] for problem in machine["problems"])


def test_short_is_short_and_plain():
    done = hocket_command.run("doctor", "--short")
    assert 5 <= len(done.stdout.splitlines()) <= 12
    assert "\x1b" not in done.stdout
    assert "engines" in done.stdout
    full = hocket_command.run("doctor")
    assert "\x1b" not in full.stdout
    assert "futex_waitv" in full.stdout and "/dev/shm" in full.stdout


def test_env_shows_values():
    environment = {**os.environ, "HOCKET_LOG": "debug"}
    done = hocket_command.run("doctor", "--env", env=environment)
    assert done.returncode == 0
    assert re.search(r"^HOCKET_LOG +(\S+ )?= debug$", done.stdout, re.M)
    assert re.search(r"^HOCKET_DEADLINE +\(not set\)$", done.stdout, re.M)


def test_env_knows_every_variable_that_the_library_reads():
    shown = hocket_command.run("doctor", "--env").stdout
    naming = re.compile(r'"(HOCKET_(?!TEST|FAKE|BENCH|BIN)[A-Z_]*[A-Z])"')
    sources = [p for p in (ROOT / "src").rglob("*") if p.suffix in (".cc", ".h")]
    for source in sources:
        for name in naming.findall(source.read_text(encoding="utf-8")):
            assert re.search(rf"^{name}\b", shown, re.M), f"{name}, read in {source}, is not shown"


def test_a_terminal_gets_colours():
    master, slave = os.openpty()
    subprocess.run(
        [hocket_command.find(), "doctor", "--short"], stdout=slave, timeout=WATCHDOG, check=False
    )
    os.close(slave)
    assert b"\x1b[" in os.read(master, 4096)
    os.close(master)


# --- key, store, version --------------------------------------------------------------------------


def test_key_is_private_and_never_overwritten(tmp_path):
    path = tmp_path / "job.key"
    assert hocket_command.run("key", path).returncode == 0
    first = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert re.fullmatch(rb"[0-9a-f]{64}\n?", first)
    again = hocket_command.run("key", path)
    assert again.returncode == 1 and str(path) in again.stderr
    assert path.read_bytes() == first
    other = tmp_path / "other.key"
    hocket_command.run("key", other)
    assert other.read_bytes() != first


def test_a_key_that_cannot_be_written_leaves_no_file(tmp_path):
    def without_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    done = hocket_command.run("key", tmp_path / "job.key", preexec_fn=without_room)
    assert done.returncode == 1 and "cannot write" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_store_serves_until_it_is_told_to_end(tmp_path, number):
    key = tmp_path / "job.key"
    hocket_command.run("key", key)
    store = hocket_command.start("store", "--key", key, "--size", 2)
    address = store.stdout.readline().strip()
    assert re.fullmatch(r"127\.0\.0\.1:\d+", address)
    store.send_signal(number)
    store.communicate(timeout=WATCHDOG)
    assert store.returncode == 0


def test_a_store_without_standard_streams_serves(tmp_path):
    key = tmp_path / "job.key"
    hocket_command.run("key", key)
    name = f"hocket-test-closed-{os.getpid()}"
    store = subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", hocket_command.find(), "store",
         "--key", key, "--address", f"unix:{name}"])
    try:
        until = time.monotonic() + WATCHDOG
        while True:  # until it listens
            assert store.poll() is None and time.monotonic() < until
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                if client.connect_ex(f"\0{name}") == 0:
                    break
            time.sleep(0.01)
        store.send_signal(signal.SIGTERM)
        assert store.wait(WATCHDOG) == 0
    finally:
        store.kill()
        store.wait()


def test_store_refuses_what_it_cannot_use(tmp_path):
    key = tmp_path / "job.key"
    hocket_command.run("key", key)
    for address in ("127.0.0.1", "127.0.0.1:port", "127.0.0.1:70000"):
        done = hocket_command.run("store", "--address", address, "--key", key)
        assert done.returncode == 2 and "HOST:PORT" in done.stderr
    key.chmod(0o644)
    done = hocket_command.run("store", "--key", key)
    assert done.returncode == 1 and str(key) in done.stderr


def test_version():
    done = hocket_command.run("version")
    assert re.fullmatch(r"hocket \d+\.\d+\.\d+\n", done.stdout)
    assert hocket_command.run("--version").stdout == done.stdout


def test_a_store_whose_address_nobody_can_read_ends(tmp_path):
    key = tmp_path / "job.key"
    hocket_command.run("key", key)
    with open("/dev/full", "w") as full:
        done = subprocess.run([hocket_command.find(), "store", "--key", key],
                              stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=20)
    assert done.returncode == 1
    assert "the store's address cannot be printed: No space left on device" in done.stderr


@pytest.mark.parametrize("command", ["run", "doctor", "key", "store"])
def test_help_has_examples_and_exit_codes(command):
    done = hocket_command.run(command, "--help")
    assert done.returncode == 0
    assert re.search(r"^Examples?:", done.stdout, re.M)
    assert "Exit code" in done.stdout


def test_wrong_use():
    for arguments in ([], ["sing"], ["run", "--sing"], ["doctor", "--short", "--json"]):
        done = hocket_command.run(*arguments)
        assert done.returncode == 2
        assert "hocket" in done.stderr and "--help" in done.stderr


def nvshmem(**settings):
    _, machine = report(**settings)
    return next(each for each in machine["libraries"] if each["name"] == "NVSHMEM")


def test_nvshmem_is_told_with_what_it_is_good_for(monkeypatch):
    library = pathlib.Path(hocket_command.find()).resolve().parent.parent / "fake_nvshmem" / "libnvshmem_host.so.3"
    if not library.exists():
        pytest.skip("this build has no stand-in for NVSHMEM")
    monkeypatch.setenv("HOCKET_NVSHMEM_LIBRARY", str(library))
    found = nvshmem()
    assert (found["version"], found["where"]) == ("3.4.5", str(library))
    assert 'heap "nvshmem", when asked for' in found["note"]
    monkeypatch.setenv("FAKE_NVSHMEM_VERSION", "3.1.7")
    assert "hocket needs 3.2" in nvshmem()["note"]
    monkeypatch.setenv("HOCKET_NVSHMEM_LIBRARY", "/nowhere/libnvshmem_host.so.3")
    gone = nvshmem()
    assert not gone["found"] and "HOCKET_NVSHMEM_LIBRARY" in gone["note"]
    assert "NVSHMEM" in hocket_command.run("doctor").stdout


@pytest.mark.parametrize("words", [["doctor"], ["version"], ["run", "--help"]])
def test_output_on_a_full_disk_is_no_success(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([hocket_command.find(), *words], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=WATCHDOG)
    assert done.returncode == 1
    assert "not all output could be written to standard output" in done.stderr


OPENBLAS = """
const char *openblas_get_config(void) { return "OpenBLAS 0.3.21 DYNAMIC_ARCH " KERNELS; }
const char *openblas_get_corename(void) { return KERNELS; }
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels of x86 processors")
def test_a_blas_with_the_kernels_of_an_old_processor_is_told_of(tmp_path):
    def blas(kernels):
        library = tmp_path / f"libopenblas_{kernels}.so"
        command = ["cc", "-shared", "-x", "c", f'-DKERNELS="{kernels}"', "-o", library, "-"]
        subprocess.run(command, input=OPENBLAS, text=True, timeout=WATCHDOG, check=True)
        _, machine = report(env={"HOCKET_BLAS_LIBRARY": str(library)})
        return next(entry for entry in machine["libraries"] if entry["name"] == "BLAS")

    assert "several times slower" not in blas("Haswell")["note"]
    old = blas("Prescott")
    assert old["version"] == "0.3.21 Prescott"
    knows_avx2 = " avx2 " in pathlib.Path("/proc/cpuinfo").read_text()
    assert ("OPENBLAS_CORETYPE=HASWELL" in old["note"]) == knows_avx2


@pytest.mark.parametrize("name, variable", [("FFTW", "HOCKET_FFT_LIBRARY"), ("BLAS", "HOCKET_BLAS_LIBRARY")])
def test_a_library_that_no_setting_knows_is_told_of(name, variable):
    _, machine = report(env={variable: "abacus"})
    (library,) = [entry for entry in machine["libraries"] if entry["name"] == name]
    assert f"{variable}=abacus" in library["note"]
