"""Makes the docstrings of the binding from its stubs: docstrings.py STUBS OUTPUT.

python/hocket/_hocket.pyi has each docstring once, beside the types. OUTPUT is a part of an array in
docstrings.h.
"""

import ast
import sys
from pathlib import Path


def docstrings(body, outer=""):
    """Yields the name of each function and class that has a docstring, and the docstring."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            text = ast.get_docstring(node)
            if text:
                yield outer + node.name, text + "\n" * ("\n" in text)
            if isinstance(node, ast.ClassDef):
                yield from docstrings(node.body, f"{outer}{node.name}.")


def main():
    stubs, output = map(Path, sys.argv[1:])
    entries = [f'{{"{name}", R"doc({text})doc"}},\n'
               for name, text in docstrings(ast.parse(stubs.read_text()).body)]
    output.write_text("".join(entries))


if __name__ == "__main__":
    main()
