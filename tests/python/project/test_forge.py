"""What forges read: forms of issues, workflows, the citation."""

import re
import subprocess
import sys

import pytest
from helpers import ROOT

import hocket

GITHUB = ROOT / ".github"
FORMS = ["bug", "question", "idea"]
SCHEMAS = {
    "github-workflows": sorted((GITHUB / "workflows").glob("*.yml")),
    "github-issue-forms": [GITHUB / "ISSUE_TEMPLATE" / f"{form}.yml" for form in FORMS],
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_keeps_to_the_schema(schema):
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}",
         *SCHEMAS[schema]],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50)
    assert done.returncode == 0, done.stdout


def test_workflows_run_what_is_there():
    for path in SCHEMAS["github-workflows"]:
        for script in re.findall(r"\b(tools/[\w./-]+\.sh)|(?<!\S)(\.ci/run)", path.read_text()):
            assert (ROOT / "".join(script)).is_file(), f"{path.name} runs {script}"


def test_support_names_the_forms():
    support = (ROOT / "SUPPORT.md").read_text()
    for form in SCHEMAS["github-issue-forms"]:
        name = re.search(r"^name: (.+)$", form.read_text(), re.M)[1]
        assert f'"{name}"' in support


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == hocket.__version__
