"""Metrics of a job: their values, who may read them, and whether Prometheus' own tool accepts
them.
"""

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import hocket_command
import pytest
from helpers import ROOT
from processes import BUILD, free_address

import hocket
from hocket._command import find_command

SUPPORT = Path(__file__).parents[1] / "support"

PROGRAM = """
import time
import numpy as np
import hocket

comm = hocket.init()
for _ in range(50):
    comm.all_reduce(np.ones(1000, "float32"))
half = comm.split(color=comm.rank % 2)
half.broadcast(np.ones(8), root=0)
if comm.rank == 0:
    for _ in range(20):
        comm.send(np.ones(10, "float32"), 1)
    comm.send_async(np.ones(3, "float64"), 2).wait()
elif comm.rank == 1:
    works = [comm.recv_async(np.empty(10, "float32"), 0) for _ in range(5)]
    for work in works:
        work.wait()
    for _ in range(15):
        comm.recv(np.empty(10, "float32"), 0)
else:
    comm.recv(np.empty(100), 0, allow_shorter=True)
comm.send_recv(np.ones(4, "int32"), comm.rank, out=np.empty(4, "int32"))
if comm.rank == 1:
    print("ready", flush=True)
    time.sleep(600)
comm.barrier()
"""


def job(*before, n=3, program=PROGRAM, args=(), **env):
    return hocket_command.running(program, n, *before, args=args, **env)


def read(address, path="/metrics", **headers):
    request = urllib.request.Request(f"http://{address}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return reply.headers["Content-Type"], reply.read().decode()


def await_metrics(address, text, **headers):
    until = time.monotonic() + 30
    while True:
        try:
            kind, found = read(address, **headers)
            if text in found:
                return kind, found
        except urllib.error.URLError:
            found = "nothing"
        assert time.monotonic() < until, found
        time.sleep(0.1)


def value(text, sample):
    (found,) = re.findall(rf"^{re.escape(sample)} (\S+)$", text, re.M)
    return float(found)


def test_counts_calls_bytes_and_who_holds_up():
    address = free_address()
    with job("--metrics", address):
        kind, text = await_metrics(address, 'hocket_holds_up_ranks{rank="1"} 2')
        assert kind.startswith("text/plain")
        labels = 'call="all_reduce",group="world",engine="shm"'
        assert value(text, f"hocket_call_duration_seconds_count{{{labels}}}") == 150
        assert value(text, f"hocket_call_bytes_total{{{labels}}}") == 150 * 4000
        assert value(text, f'hocket_call_duration_seconds_bucket{{{labels},le="+Inf"}}') == 150
        assert value(text, f"hocket_call_duration_seconds_sum{{{labels}}}") > 0
        assert value(text, f"hocket_calls_failed_total{{{labels}}}") == 0
        assert value(text, 'hocket_ranks{state="alive"}') == 3
        assert 'call="broadcast",group="world/1"' in text or 'group="world/' in text
        assert value(text, 'hocket_holds_up_ranks{rank="0"}') == 0
        assert value(text, 'hocket_memory_bytes{kind="touched"}') > 0
        # The time of waiting calls goes on.
        first = value(text, 'hocket_waiting_seconds_total{rank="0"}')
        until = time.monotonic() + 20
        while value(read(address)[1], 'hocket_waiting_seconds_total{rank="0"}') <= first:
            assert time.monotonic() < until
        # Buckets only grow.
        buckets = re.findall(rf"_bucket{{{re.escape(labels)},le=.*}} (\S+)$", text, re.M)
        assert len(buckets) == 14 and sorted(map(float, buckets)) == list(map(float, buckets))


def test_counts_messages():
    address = free_address()
    with job("--metrics", address):
        _, text = await_metrics(address, 'hocket_message_bytes_total{direction="received"')
        sent, received = (f'{{direction="{way}",group="world"}}' for way in ("sent", "received"))
        for labels in (sent, received):
            assert value(text, f"hocket_message_duration_seconds_count{labels}") == 20 + 1 + 3
            # Counts the elements that came, not the room for them.
            assert value(text, f"hocket_message_bytes_total{labels}") == 20 * 40 + 24 + 3 * 16
            assert value(text, f"hocket_messages_failed_total{labels}") == 0
        assert value(text, f"hocket_message_duration_seconds_sum{received}") > 0
        assert 'call="send"' not in text and 'call="recv"' not in text


FAILING = """
import os, signal, time
import numpy as np
import hocket

comm = hocket.init()
comm.barrier()
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.recv(np.empty(4), 1)
except hocket.PeerDied:
    pass
print("ready", flush=True)
time.sleep(600)
"""


def test_counts_messages_that_failed():
    address = free_address()
    with job("--metrics", address, "--keep-going", n=2, program=FAILING):
        _, text = await_metrics(address, 'hocket_messages_failed_total{direction="received"')
        assert value(text, 'hocket_messages_failed_total{direction="received",group="world"}') == 1


ON_GPUS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import hocket
from fake_gpu import Array, Driver

driver = Driver()
comm = hocket.init(engines=[sys.argv[2]])
driver.use(comm.rank)
stream = driver.stream()
x = Array(driver, np.arange(2000.0) + comm.rank)
for _ in range(7):
    comm.all_reduce(x, out=x, stream=stream)
if comm.rank == 0:
    comm.send(x, 1, stream=stream)
else:
    comm.recv(x, 0, stream=stream)
driver.synchronize(stream)
comm.broadcast(x, root=0, stream=stream)  # who makes the next call counts how long the last ones ran
comm.barrier()
if comm.rank == 1:
    print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not (BUILD / "fake_nccl").exists(), reason="this build has no fake driver")
@pytest.mark.parametrize("engine", ["shm", "nccl"])
def test_counts_calls_on_gpus(engine):
    nccl = str(BUILD / "fake_nccl" / "libnccl.so.2") if engine == "nccl" else "none"
    address = free_address()
    with job("--metrics", address, n=2, program=ON_GPUS, args=(SUPPORT, engine),
             LD_LIBRARY_PATH=str(BUILD / "fake_cuda"), HOCKET_NCCL_LIBRARY=nccl):
        _, text = await_metrics(address, 'hocket_gpu_call_bytes_total{call="recv"')
    by = "nccl" if engine == "nccl" else "host"
    for call in ("send", "recv"):
        labels = f'{{call="{call}",group="world",engine="{by}"}}'
        assert value(text, f"hocket_gpu_launch_duration_seconds_count{labels}") == 1
        assert value(text, f"hocket_gpu_call_bytes_total{labels}") == 16000
    labels = f'{{call="all_reduce",group="world",engine="{engine}"}}'
    kind = "gpu_launch" if engine == "nccl" else "call"
    # The host also counts the first exchanges between the ranks.
    calls = value(text, f"hocket_{kind}_duration_seconds_count{labels}")
    assert calls == 14 if engine == "nccl" else calls >= 14
    if engine == "nccl":
        assert value(text, f"hocket_gpu_call_bytes_total{labels}") == 14 * 16000
        assert value(text, f"hocket_gpu_calls_failed_total{labels}") == 0
        ran = "hocket_gpu_call_duration_seconds"
        assert value(text, f"{ran}_count{labels}") == 14
        assert 0 < value(text, f"{ran}_sum{labels}") < 60
        for call in ("send", "recv"):
            assert value(text, f'{ran}_count{{call="{call}",group="world",engine="nccl"}}') == 1


def test_tells_the_clients_of_the_store():
    address = free_address()
    with job("--metrics", address):
        _, text = await_metrics(address, "hocket_store_clients")
        assert value(text, "hocket_store_clients") >= 3


def test_speaks_open_metrics():
    address = free_address()
    with job("--metrics", address):
        accept = "application/openmetrics-text; version=1.0.0"
        kind, text = await_metrics(address, "hocket_call_bytes", Accept=accept)
        assert kind.startswith("application/openmetrics-text; version=1.0.0")
        assert text.endswith("# EOF\n")
        assert "# TYPE hocket_call_bytes counter\n# UNIT hocket_call_bytes bytes\n" in text
        families = re.findall(r"^# TYPE (\S+)", text, re.M)
        assert len(families) == len(set(families)) >= 10
        for path, code in (("/other", 404),):
            with pytest.raises(urllib.error.HTTPError) as refused:
                read(address, path)
            assert refused.value.code == code


def test_the_first_rank_serves_where_no_launcher_does():
    address = free_address()
    with job(HOCKET_METRICS=address):
        _, text = await_metrics(address, 'hocket_ranks{state="alive"} 3')
        assert 'call="all_reduce"' in text


@pytest.mark.parametrize("address, words", [("nowhere", "no HOST:PORT"), ("127.0.0.1:70000", "no HOST:PORT"),
                                            ("127.0.0.1", "no HOST:PORT"), ("0.0.0.0:9464", "METRICS_TOKEN")])
def test_an_address_that_is_none_is_refused(monkeypatch, address, words):
    monkeypatch.setenv("HOCKET_METRICS", address)
    with pytest.raises(hocket.InvalidArgument, match=f"HOCKET_METRICS.*{words}"):
        hocket.init(rank=0, size=1)


def test_a_token_is_needed_for_others():
    port = free_address().rsplit(":", 1)[1]
    done = subprocess.run(
        [find_command(), "run", "-n", "1", "--metrics", f"0.0.0.0:{port}", "--", "true"],
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 2 and "HOCKET_METRICS_TOKEN" in done.stderr
    with job("--metrics", f"0.0.0.0:{port}", HOCKET_METRICS_TOKEN="secret-4711"):
        address = f"127.0.0.1:{port}"
        for headers in ({}, {"Authorization": "Bearer secret"}, {"Authorization": "secret-4711"}):
            with pytest.raises(urllib.error.HTTPError) as refused:
                read(address, **headers)
            assert refused.value.code == 401
        await_metrics(address, "hocket_ranks", Authorization="Bearer secret-4711")


def test_rubbish_does_not_hinder_others():
    address = free_address()
    host, port = address.split(":")
    with job("--metrics", address):
        await_metrics(address, "hocket_ranks")
        silent = [socket.create_connection((host, int(port))) for _ in range(3)]
        with socket.create_connection((host, int(port))) as loud:
            try:
                loud.sendall(b"\xff" * 100_000)
            except OSError:
                pass
        assert "hocket_ranks" in read(address)[1]
        for each in silent:
            each.close()


@pytest.mark.parametrize("says", [b"", b"GET /metrics HTTP/1.1\r\n"])
@pytest.mark.parametrize("number", [16, 64, 200])
def test_half_open_connections_keep_no_reader_out(number, says):
    address = free_address()
    host, port = address.split(":")
    with job("--metrics", address):
        await_metrics(address, "hocket_ranks")
        half_open = []
        enough = threading.Event()

        def connect():
            half_open.append(socket.create_connection((host, int(port))))
            half_open[-1].sendall(says)

        def go_on_connecting():  # so that none is missed that is hung up on for its silence
            while not enough.wait(0.03):
                connect()

        for _ in range(number):
            connect()
        others = threading.Thread(target=go_on_connecting)
        others.start()
        try:
            assert "hocket_ranks" in read(address)[1]
        finally:
            enough.set()
            others.join()
            for each in half_open:
                each.close()


def test_nothing_runs_without():
    with job() as process:
        found = json.loads(subprocess.run(
            [find_command(), "top", "--json", "--seconds", "0"],
            capture_output=True, text=True, check=True).stdout)["jobs"]
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        pids = {int(pid) for each in children
                for pid in Path(f"/proc/{each}/task/{each}/children").read_text().split()}
        pids |= set(map(int, children))
        (mine,) = [each for each in found if pids & set(each["pids"])]
        for pid in [process.pid, *mine["pids"]]:
            names = {(task / "comm").read_text().strip()
                     for task in Path(f"/proc/{pid}/task").iterdir()}
            assert "hocket-metrics" not in names


def test_prometheus_takes_it():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here (Debian: prometheus)")
    address = free_address()
    with job("--metrics", address):
        _, text = await_metrics(address, "hocket_call_bytes_total")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "", done.stderr


def test_prometheus_scrapes_it(tmp_path):
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("there is no Prometheus here (Debian: prometheus)")
    address, own = free_address(), free_address()
    (tmp_path / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: hocket
    authorization: {{credentials: a-token}}
    static_configs: [{{targets: ["{address}"]}}]
""")
    with job("--metrics", address, HOCKET_METRICS_TOKEN="a-token"):
        server = subprocess.Popen(
            [prometheus, f"--config.file={tmp_path}/prometheus.yml",
             f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address={own}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            query = "/api/v1/query?query=hocket_holds_up_ranks%7Brank%3D%221%22%7D"
            until = time.monotonic() + 60
            while True:
                try:
                    found = json.loads(read(own, query)[1])["data"]["result"]
                    if found and found[0]["value"][1] == "2":
                        break
                except urllib.error.URLError:
                    found = "nothing"
                assert time.monotonic() < until, found
                time.sleep(0.2)
            _, kept = read(own, "/api/v1/query?query=hocket_call_duration_seconds_count")
            calls = {each["metric"]["call"]: each["value"][1]
                     for each in json.loads(kept)["data"]["result"]}
            assert calls["all_reduce"] == "150"
        finally:
            server.terminate()
            server.wait(30)


def test_a_dashboard_asks_for_what_is_served():
    address = free_address()
    with job("--metrics", address):
        _, text = await_metrics(address, "hocket_call_bytes_total")
    served = set(re.findall(r"^(hocket_\w+)", text, re.M))
    served |= {"hocket_failed_groups"}  # has no sample while all is well
    # Nor have these without GPUs.
    served |= {f"hocket_gpu_{each}" for each in
               ("launch_duration_seconds_count", "call_duration_seconds_bucket", "call_bytes_total",
                "calls_failed_total")}
    dashboard = json.loads((ROOT / "packaging/grafana/hocket.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(asked) >= 6
    for expression in asked:
        names = set(re.findall(r"hocket_\w+", expression))
        assert names and names <= served, expression
