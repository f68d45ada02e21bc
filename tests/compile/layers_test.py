#!/usr/bin/env python3
"""tools/check/layers.py finds each kind of breach, and nothing in sources that keep the law."""

import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check" / "layers.py"
spec = importlib.util.spec_from_file_location("layers", TOOL)
layers = importlib.util.module_from_spec(spec)
sys.modules["layers"] = layers
spec.loader.exec_module(layers)

LAYERS = """foreach(layer foundation/base foundation/os engine engines/algorithm engines/local engines/shm
              calls/world calls/compose interfaces/capi)
endforeach()
"""


class CheckLayers(unittest.TestCase):
    def errors(self, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name, text in {"src/CMakeLists.txt": LAYERS, **files}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return layers.check(root).errors

    def assert_breach(self, name: str, text: str, word: str) -> None:
        errors = self.errors({name: text})
        self.assertEqual(len(errors), 1, errors)
        self.assertIn(name, errors[0])
        self.assertIn(word, errors[0])

    def test_law_kept(self):
        self.assertEqual(self.errors({
            "include/hocket/a.h": "#include <vector>\n#include \"hocket/b.h\"\n",
            "src/foundation/base/a.h": "#include <fmt/format.h>\n",
            "src/engines/shm/a.cc": '#include "foundation/os/a.h"\n#include "hwy/highway.h"\n',
            "src/calls/compose/providers.cc": '#include "engines/shm/a.h"\n#include "engines/local/a.h"\n',
            "src/foundation/base/config.cc": 'auto v = std::getenv("X");\n',
            "src/interfaces/cli/run.cc": '#include "interfaces/cli/a.h"\n#include <hocket/hocket.h>\n',
            "include/hocket/c.h": "#include <stdint.h>\n",
            "src/interfaces/capi/a.cc": '#include "interfaces/capi/a.h"\n#include "hocket/c.h"\n',
            "examples/a.cc": "#include <hocket/hocket.h>\n#include \"check.h\"\n",
        }), [])

    def test_upwards(self):
        self.assert_breach("src/foundation/base/a.h", '#include "foundation/os/a.h"\n', "lies above")

    def test_engine_to_engine(self):
        self.assert_breach("src/engines/shm/a.h", '#include "engines/local/a.h"\n', "each other")

    def test_engine_named_outside_the_root(self):
        self.assert_breach("src/calls/world/a.cc", '#include "engines/shm/a.h"\n', "composition root")

    def test_algorithm_sees_no_system(self):
        self.assert_breach("src/engines/algorithm/a.cc", '#include "foundation/os/a.h"\n', "algorithm includes foundation/os")

    def test_public_header(self):
        self.assert_breach("include/hocket/a.h", "#include <sys/mman.h>\n", "public header")
        self.assert_breach("include/hocket/a.h", '#include "foundation/base/a.h"\n', "public header")
        self.assert_breach("include/hocket/c.h", "#include <vector>\n", "public header")

    def test_faces(self):
        for name in ("src/interfaces/cli/a.cc", "src/interfaces/capi/a.cc", "python/src/a.cc",
                     "examples/a.cc", "bench/a.cc"):
            self.assert_breach(name, '#include "foundation/base/a.h"\n', "hocket/ alone")

    def test_environment(self):
        self.assert_breach("src/foundation/os/a.cc", 'auto v = getenv("X");\n', "environment")

    def test_length(self):
        self.assert_breach("src/foundation/os/a.cc", "\n" * 601, "601 lines")

    def test_unknown_layer(self):
        self.assert_breach("src/other/a.cc", "\n", "no layer")


if __name__ == "__main__":
    unittest.main()
