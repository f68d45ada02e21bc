"""Subjects of commits: `area: words`, at most 72 characters."""

import re
import subprocess

import pytest
from helpers import ROOT

SINCE = "b9a9e781"  # commits before this one followed no rule
SUBJECT = re.compile(r"[\w.*/+-]+(?:, [\w.*/+-]+)*(?: and [\w.*/+-]+)?: \S.*")
MOST_CHARACTERS = 72


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, timeout=50)


def fault_of(subject):
    """What is wrong with it; nothing where it is right."""
    if len(subject) > MOST_CHARACTERS:
        return f"{len(subject)} characters, at most {MOST_CHARACTERS} fit"
    return "" if SUBJECT.fullmatch(subject) else "it is not `area: words`"


@pytest.mark.parametrize(("subject", "right"), [
    ("gpu: report a failure only after its kernel has stopped", True),
    ("src/engines: a name", True),
    ("words, docs and tests: plain sentences", True),
    ("x: " + "a" * 69, True),
    ("x: " + "a" * 70, False),
    ("no area at all", False),
    ("area:words", False),
    ("area: ", False),
    (": words", False),
])
def test_a_subject(subject, right):
    assert (fault_of(subject) == "") == right


def test_subjects_of_this_branch():
    if git("merge-base", "--is-ancestor", SINCE, "HEAD").returncode != 0:
        pytest.skip(f"there is no git history here that reaches back to {SINCE}")
    log = git("log", "--no-merges", "--format=%h %s", f"{SINCE}..HEAD").stdout
    subjects = [line.split(" ", 1) for line in log.splitlines()]
    faults = {f"{commit} {subject}": fault for commit, subject in subjects if (fault := fault_of(subject))}
    assert not faults
