"""tools/speed/history.py: a record of every cell, and an exit code for a fall in speed."""

import copy
import importlib.util
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from helpers import ROOT

from hocket._command import find_command

TOOL = ROOT / "tools" / "speed" / "history.py"
spec = importlib.util.spec_from_file_location("history", TOOL)
history = importlib.util.module_from_spec(spec)
spec.loader.exec_module(history)


def record(commit, ratio=0.5, spread=0.02, **changes):
    cells = {
        f"{collective} {size}": [ratio, ratio - spread, ratio + spread]
        for collective in history.COLLECTIVES
        for size in history.SIZES
    }
    machine = {"cpu": "a processor", "processors": "2 on 2 cores"}
    return {"commit": commit, "date": "2026-01-01", "hocket": "0.1.0", "machine": machine, "peer": "MPI 1",
            "ranks": 2, "cells": cells} | changes


def checked(tmp_path, *records, what="check"):
    file = tmp_path / "history.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    done = subprocess.run([sys.executable, TOOL, what, "--file", file], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=50)
    return done.returncode, done.stdout


def with_cell(base, cell, *figures):
    changed = copy.deepcopy(base)
    changed["cells"][cell] = list(figures)
    return changed


@pytest.mark.parametrize(
    "figures, code",
    [
        ((0.54, 0.53, 0.55), 0),  # slower, but by less than 10 %
        ((0.60, 0.51, 0.70), 0),  # slower, but within the spread
        ((0.60, 0.58, 0.62), 1),
        ((0.30, 0.29, 0.31), 0),  # faster
    ],
)
def test_a_fall_has_an_exit_code(tmp_path, figures, code):
    before, now = record("a" * 40), with_cell(record("b" * 40), "broadcast 8", *figures)
    got, said = checked(tmp_path, before, now)
    assert got == code, said
    assert ("broadcast 8 has become 1.20 times as slow" in said) == bool(code)


def test_only_like_is_compared_with_like(tmp_path):
    slow = record("c" * 40, ratio=2.0)
    other = record("b" * 40, ratio=0.1, machine={"cpu": "another", "processors": "8 on 8 cores"})
    code, said = checked(tmp_path, other, slow)
    assert code == 2 and "no earlier record of this machine" in said
    code, said = checked(tmp_path, record("a" * 40), other, slow)
    assert code == 1 and "20 fell since aaaaaaaaaaaa" in said
    assert checked(tmp_path)[0] == 2


def test_the_picture_has_each_record(tmp_path):
    code, said = checked(tmp_path, record("a" * 40), record("b" * 40, 0.7), record("c" * 40, 3.0), what="picture")
    assert code == 0, said
    tree = ElementTree.parse(tmp_path / "history.svg")
    circles = [one for one in tree.iter("{http://www.w3.org/2000/svg}circle") if one.get("r") == "2.5"]
    assert len(circles) == 3 * 20


def test_figures_of_the_benchmark_become_a_record(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "SIZES", {8: "8 B", 1 << 12: "4 KiB"})  # shorter than the real ones
    file = tmp_path / "bench.json"
    command = [find_command(), "bench", *history.COLLECTIVES, "-n", "2", "--sizes", ",".join(map(str, history.SIZES)),
               "--repeats", "1", "--min-time", "1", "--json", file]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50)
    assert done.returncode == 0, done.stdout
    figures = json.loads(file.read_text())
    # No other library need be here: hocket's own rows stand for it.
    figures["config"]["libraries"]["peer"] = {"version": "peer 1"}
    with pytest.raises(ValueError, match="cells are missing"):
        history.record_of(figures, "a" * 40, "peer")
    figures["ratios"] = [
        {**row, "to": "peer", "ratio": 1.0, "lower_quartile": 0.9, "upper_quartile": 1.1}
        for row in figures["rows"]
    ]
    made = history.record_of(figures, "a" * 40, "peer")
    assert len(made["cells"]) == 10 and history.are_comparable(made, made)
    figures["rows"][3]["verified"] = False
    with pytest.raises(ValueError, match="results are wrong"):
        history.record_of(figures, "a" * 40, "peer")
