"""examples/launch: the scripts of batch systems and the files for containers, run as far as it goes here."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import hocket_command
import pytest
import small_slurm
import ssh_hosts
import yaml

FOLDER = hocket_command.ROOT / "examples" / "launch"
WHY_NOT = ssh_hosts.why_not()
needs_hosts = pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT or "-")
WHY_NO_SLURM = WHY_NOT or small_slurm.why_not()
needs_slurm = pytest.mark.skipif(WHY_NO_SLURM != "", reason=WHY_NO_SLURM or "-")

PROGRAM = """
import os
import hocket
comm = hocket.init(timeout=40)
total = int(comm.all_reduce(comm.rank + 1))
print("of", comm.size, total, list(comm.hosts), flush=True)
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    made = ssh_hosts.SshHosts(tmp_path_factory.mktemp("hosts"), "ab")
    yield made
    made.close()


@pytest.fixture
def program(tmp_path):
    """The words that run a program in which all ranks take part."""
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    return [sys.executable, str(file)]


def environment(**more):
    return {**os.environ, "HOCKET": hocket_command.find(), **more}


def assert_good(out, ranks, placed):
    total = ranks * (ranks + 1) // 2
    assert sorted(out.splitlines()) == [f"[{rank}] of {ranks} {total} {placed}" for rank in range(ranks)], out


@pytest.mark.parametrize("script", ["slurm.sh", "pbs.sh"])
def test_scripts_have_no_mistakes_that_tools_find(script):
    subprocess.run(["bash", "-n", FOLDER / script], check=True)
    if shutil.which("shellcheck") is None:
        pytest.skip("needs shellcheck for the rest")
    done = subprocess.run(["shellcheck", FOLDER / script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_each_file_is_in_the_table():
    said = (FOLDER / "README.md").read_text()
    for file in FOLDER.iterdir():
        assert file.name == "README.md" or f"[{file.name}]({file.name})" in said, file


@needs_hosts
def test_the_script_for_pbs_starts_the_places_of_the_node_file(hosts, program, tmp_path):
    nodes = tmp_path / "nodes"
    nodes.write_text("a\na\nb\na\n")
    done = subprocess.run(
        hosts.inside("", "bash", FOLDER / "pbs.sh"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=hocket_command.WATCHDOG,
        env=environment(PBS_NODEFILE=str(nodes), PBS_O_WORKDIR=str(tmp_path),
                        PROGRAM=" ".join(["env", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}", *program]),
                        PATH=f"{hosts.folder / 'bin'}:{os.environ['PATH']}"))
    assert done.returncode == 0, done.stderr
    assert_good(done.stdout, 4, [0, 0, 0, 1])


@pytest.fixture(scope="module")
def slurm(hosts, tmp_path_factory):
    made = small_slurm.SmallSlurm(hosts, tmp_path_factory.mktemp("slurm"))
    made.await_idle()
    yield made
    made.close()


def submit(slurm, tmp_path, *words, options=()):
    """Submits the script and waits for its end: its exit code, output and standard error."""
    out, err = tmp_path / "out", tmp_path / "err"
    code, said = slurm.run(
        "sbatch", "--wait", "--ntasks-per-node=2", "--export=ALL", f"--chdir={tmp_path}", f"--output={out}",
        f"--error={err}", *options, FOLDER / "slurm.sh", *words, HOCKET=hocket_command.find())
    return code, said, out.read_text(), err.read_text()


@needs_slurm
def test_the_script_for_slurm_runs_a_job_over_its_nodes(slurm, program, tmp_path):
    code, said, out, err = submit(slurm, tmp_path, *program)
    assert code == 0, (said, out, err)
    assert_good(out, 4, [0, 0, 1, 1])


@needs_slurm
def test_slurm_hears_of_a_rank_that_failed(slurm, tmp_path):
    code, said, out, err = submit(slurm, tmp_path, "sh", "-c", "test $HOCKET_RANK = 3 && exit 9; sleep 5")
    assert code == 9 and "hocket: b: rank 3 (pid" in err, (said, out, err)


@needs_slurm
def test_the_end_of_slurms_time_reaches_the_ranks_and_nothing_is_left(slurm, hosts, tmp_path):
    waits = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    _, said = slurm.run("sbatch", "--parsable", "--ntasks-per-node=1", f"--chdir={tmp_path}", "--export=ALL",
                        f"--output={tmp_path}/out", FOLDER / "slurm.sh", "sh", "-c", waits,
                        HOCKET=hocket_command.find())
    job = said.split()[0]
    until = time.monotonic() + hocket_command.WATCHDOG
    out = pathlib.Path(tmp_path / "out")
    while not out.exists() or out.read_text().count("up") < 2:
        assert time.monotonic() < until, out.exists() and out.read_text()
        time.sleep(0.1)
    code, said = slurm.run("scancel", "--batch", f"--signal={signal.Signals(signal.SIGTERM).name[3:]}", job)
    assert code == 0, said
    while out.read_text().count("told") < 2:
        assert time.monotonic() < until, out.read_text()
        time.sleep(0.1)
    while left := [line for line in hosts.left().values() if "as-host" in line or "while :" in line]:
        assert time.monotonic() < until, left
        time.sleep(0.1)


def run_on_hosts(hosts, commands, key, names, **variables):
    """Runs one shell command on each host, as its container would; their exit codes and output."""
    seen = {"/etc/hosts": hosts.folder / "hosts-of-containers"}
    hosts.write_names({name: hosts.address(host) for name, host in names.items()}, seen["/etc/hosts"])
    path = f"{pathlib.Path(hocket_command.find()).parent}:{os.environ['PATH']}"
    started = [
        subprocess.Popen(hosts.inside(host, "sh", "-c", command.replace("/etc/hocket/job.key", str(key))
                                      .replace("/run/secrets/job.key", str(key)), files=seen),
                         env=environment(PATH=path, **variables, **more), cwd=key.parent, text=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for host, command, more in commands]
    texts = [process.communicate(timeout=hocket_command.WATCHDOG)[0] for process in started]
    return [process.returncode for process in started], "".join(texts)


@pytest.fixture
def key(tmp_path):
    assert hocket_command.run("key", tmp_path / "job.key").returncode == 0
    return tmp_path / "job.key"


@pytest.fixture
def python_here(tmp_path, program):
    """A `python` in PATH that has the package, as an image's has."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(tmp_path / "bin")


def test_the_job_for_kubernetes_has_what_its_parts_need():
    service, job = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    assert (service["apiVersion"], service["kind"]) == ("v1", "Service")
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    name = job["metadata"]["name"]
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    container, = pod["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert all(isinstance(value, str) for value in variables.values())
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
    assert variables["PODS"] == str(spec["completions"])
    assert variables["RANKS"] == container["resources"]["limits"]["cpu"]
    # The name at which the pods meet: the first pod's, of the headless service.
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert f" {name}-0.{pod['subdomain']}:29400 " in container["args"][0]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    assert f"--key {mounts['key']}/job.key " in container["args"][0]
    secret, = (volume["secret"] for volume in pod["volumes"] if volume["name"] == "key")
    assert secret["defaultMode"] == 0o400 and pod["restartPolicy"] == "Never"


@needs_hosts
def test_the_command_of_kubernetes_pods_runs_on_two_hosts(hosts, key, python_here):
    _, job = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    container, = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["/bin/sh", "-c"]
    command = f'export PATH={python_here}:"$PATH"; {container["args"][0]}'
    variables = {one["name"]: one["value"] for one in container["env"]}
    codes, text = run_on_hosts(
        hosts, [(host, command, {"JOB_COMPLETION_INDEX": str(i)}) for i, host in enumerate("ab")], key,
        {"hocket-0.hocket": "a", "hocket-1.hocket": "b"}, **{**variables, "RANKS": "2"})
    assert codes == [0, 0], text
    assert_good(text, 4, [0, 0, 1, 1])


@needs_hosts
def test_the_commands_of_composes_services_run_on_two_hosts(hosts, key, python_here):
    composed = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    services = composed["services"]
    assert list(services) == ["host0", "host1"]
    for service in services.values():
        assert service["networks"] == list(composed["networks"]) and service["init"]
        assert [secret["source"] for secret in service["secrets"]] == list(composed["secrets"])
        assert f"--key {service['secrets'][0]['target']} " in service["command"]
    commands = [(host, f'export PATH={python_here}:"$PATH"; {service["command"]}', {})
                for host, service in zip("ab", services.values(), strict=True)]
    codes, text = run_on_hosts(hosts, commands, key, {"host0": "a", "host1": "b"})
    assert codes == [0, 0], text
    assert_good(text, 4, [0, 0, 1, 1])
