#!/usr/bin/env python3
"""tools/check/limits.py finds what each row counts, and nothing in sources that have none of it."""

import contextlib
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check" / "limits.py"
spec = importlib.util.spec_from_file_location("limits", TOOL)
trunk = importlib.util.module_from_spec(spec)
sys.modules["limits"] = trunk
spec.loader.exec_module(trunk)

LONG = "  int a;\n" * (trunk.BIG_CLASS + 5)


class CountTrunk(unittest.TestCase):
    def count(self, places, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            (root / "src").mkdir()
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return places(trunk.Tree(root))

    def test_files_that_name_a_kind(self):
        self.assertEqual(self.count(trunk.naming_a_kind, {
            "src/calls/world/a.cc": "f(Kind::kAllToAll);\ng(Kind::kAllToAll);\n",
            "src/calls/world/b.cc": "f(Kind::kAllToAllV);  // kAllToAll\n",
            "src/interfaces/cli/c.cc": "f(Kind::kAllToAll);\n",
            "tests/d.cc": "f(Kind::kAllToAll);\n",
        }), ["src/calls/world/a.cc"])

    def test_defaults_over_kinds(self):
        over_kinds = ("void f() {\n  switch (kind) {\n    case Kind::kReduce:\n      break;\n"
                      "    default:\n      break;\n  }\n}\n")
        files = {"src/a/a.cc": over_kinds, "src/a/b.cc": over_kinds.replace("Kind::", "Color::")}
        self.assertEqual(self.count(trunk.defaults_over_kinds, files), ["src/a/a.cc:2"])
        self.assertEqual(self.count(trunk.defaults, files), ["src/a/a.cc:5", "src/a/b.cc:5"])

    def test_largest_folder(self):
        self.assertEqual(self.count(trunk.largest_folder, {
            "src/a/a.cc": "", "src/a/a.h": "", "src/a/b/c.cc": "",
            **{f"src/engines/algorithm/{i}.cc": "" for i in range(5)},
        }), ["src/a/a.cc", "src/a/a.h"])

    def test_texts_that_decide(self):
        self.assertEqual(self.count(trunk.text_decides, {
            "src/calls/world/a.cc": 'a = failure.text == kDiedText;\nb = what.text.size();\n'
                                  'if (text.starts_with("died")) {}\n',
            "src/foundation/base/b.cc": 'if (text == "on") {}\n',
        }), ["src/calls/world/a.cc:1", "src/calls/world/a.cc:3"])

    def test_names_of_two_layers(self):
        self.assertEqual(self.count(trunk.names_of_two_layers, {
            "src/w/a/a.h": "struct Lot {};\nclass Own {\n  struct Part {};\n};\nclass Later;\n",
            "src/w/a/b.h": "struct Own {};\n",
            "src/engines/x/a.h": "class Lot final {};\nstruct Part {};\nclass Later {};\n",
            "src/engines/y/a.h": "enum class Lot : int {};\n",
        }), ["Lot: engines/x, engines/y, w/a"])

    def test_friends(self):
        big = f"class Big {{\n  friend class Other;\n  friend class Small;\n{LONG}}};\n"
        files = {"src/a/a.h": big + "class Other {\n};\nclass Small {\n};\n",
                 "src/a/a.cc": f"void Other::f() {{\n{LONG}}}\n"}
        self.assertEqual(self.count(trunk.big_friends, files), ["src/a/a.h: Big and Other"])

    def test_casts_back(self):
        self.assertEqual(self.count(trunk.casts_back, {
            "src/a/a.cc": "struct One : public Face {};\na = dynamic_cast<One*>(f);\n"
                          "b = static_cast<One&>(g);\nc = static_cast<Other*>(h);\n",
        }), ["src/a/a.cc:2", "src/a/a.cc: static_cast<One&>"])

    def test_files_that_name_an_engine(self):
        self.assertEqual(self.count(trunk.touched_by("ucx"), {
            "src/calls/world/a.cc": "UcxEngine engine;\n", "src/calls/world/b.cc": "// UCX\n",
            "src/engines/ucx/c.cc": "UcxEngine engine;\n", "src/CMakeLists.txt": "engines/ucx\n",
        }), ["src/calls/world/a.cc", "src/CMakeLists.txt"])

    def test_waits_and_memos(self):
        files = {"src/foundation/base/poll.h": "for (;;) {\n  std::this_thread::yield();\n}\n",
                 "src/calls/call/waiter.cc": "sched_yield();\n",
                 "src/a/a.cc": "std::this_thread::yield();\nwaiter.pause();\nwait();\n"
                               "::usleep(200);\n",
                 "src/a/a.h": "engine::ChoiceMemo<engine::Way*> chosen_;\nRequest repeated_;\n"
                              "KeptPlans<Plan> kept_;\nint last_ = 0;\nKeptPlans& kept() {\n"}
        self.assertEqual(self.count(trunk.waits, files),
                         ["src/foundation/base/poll.h:1", "src/a/a.cc:1", "src/a/a.cc:2", "src/a/a.cc:4"])
        self.assertEqual(self.count(trunk.memos, files),
                         ["src/a/a.h:1", "src/a/a.h:2", "src/a/a.h:3"])

    def test_above_its_limit(self):
        for limit, code in ((1, 0), (0, 1)):
            row = trunk.Row("one", lambda tree: ["here"], limit, 0)
            out = io.StringIO()
            with mock.patch.object(trunk, "ROWS", (row,)), \
                    mock.patch.object(sys, "argv", ["limits", str(TOOL.parent)]), \
                    contextlib.redirect_stdout(out):
                self.assertEqual(trunk.main(), code)
            self.assertEqual("ABOVE ITS LIMIT" in out.getvalue(), code == 1)


if __name__ == "__main__":
    unittest.main()
