"""``hocket demo``: shows a new user what hocket does."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from .._command import find_command


def main(arguments: list[str]) -> int:
    """Describe the machine, train a network, measure all_reduce; return the exit code."""
    parser = argparse.ArgumentParser(
        "hocket demo", description="Look at this machine, train a small network on several ranks, and "
        "measure all_reduce. It takes about a minute.")
    parser.add_argument("--html", default="hocket-bench.html", metavar="FILE",
                        help="where the picture of the measurement goes (%(default)s)")
    parser.add_argument("--compare", action="store_true",
                        help="measure the MPI libraries beside it that this build knows")
    options = parser.parse_args(arguments)
    ranks = 4
    training = Path(__file__).parents[1] / "demo" / "train_digits.py"
    picture = Path(options.html).absolute()
    steps = [
        ("This machine", ["doctor", "--short"]),
        (f"Training a network, its data shared out over {ranks} ranks ({training})",
         ["run", "-n", str(ranks), "--", sys.executable, str(training)]),
        ("all_reduce between two ranks", [
            "bench", "all_reduce", "-n", "2", "--max", "4M", "--memory", "ordinary,symmetric",
            "--html", str(picture), "--json", str(picture.with_suffix(".json")),
            *(["--compare"] if options.compare else [])]),
    ]
    for number, (title, command) in enumerate(steps, 1):
        print(f"\n[{number}/{len(steps)}] {title}\n$ hocket {' '.join(command)}", flush=True)
        code = subprocess.run([find_command(), *command], env=os.environ, check=False).returncode
        if code != 0:
            print(f"hocket demo: hocket {command[0]} ended with {code}", file=sys.stderr)
            return code
    print(f"\nThe picture: {picture}")
    return 0
