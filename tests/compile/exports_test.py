#!/usr/bin/env python3
"""exports_test.py INCLUDE LIBRARY INSIDE: what the shared library shows, against the public headers.

LIBRARY is libhocket as it is installed, INSIDE the same library with nothing hidden. It must export
exactly the declarations of the headers. C functions of version 0.1 stay.
"""

import re
import subprocess
import sys
from pathlib import Path

PROMISED = Path(__file__).resolve().parents[1] / "capi" / "functions_0_1.txt"

# Exports of a class declared in a header, apart from its functions.
OF_CLASS = re.compile(r"(?:typeinfo for |typeinfo name for |vtable for )?hocket::([A-Z]\w*)")
FUNCTION = re.compile(r"hocket::([a-z]\w*)(?:\[abi:cxx11\])?\(")
OPERATOR = re.compile(r"hocket::operator\W+\(hocket::([A-Z]\w*)")
DECLARED_CLASS = re.compile(r"\b(?:class|struct)\s+([A-Z]\w*)")
# A function of namespace hocket stands at the start of a line there.
DECLARED_FUNCTION = re.compile(
    r"^(?!static|inline|constexpr|template)(?:\[\[noreturn\]\] )?[\w:<>,\s*&]+?\b([a-z]\w*)\(",
    re.MULTILINE)
DECLARED_C = re.compile(r"\b(hocket_\w+)\(")


def symbols(library):
    listed = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True,
                            check=True).stdout
    return {line.split(maxsplit=2)[2] for line in listed.splitlines()}


def main():
    include, library, inside = sys.argv[1:]
    headers = sorted((Path(include) / "hocket").glob("*.h"))
    of_c = [path for path in headers if path.name in ("c.h", "c_membership.h", "c_calls.h", "c_grid.h", "c_operators.h")]
    cpp = "\n".join(path.read_text() for path in headers if path not in of_c)
    code = re.sub(r"//.*", "", cpp)
    code = re.sub(r"\[\[nodiscard.*?\]\] *", "", code)
    classes = set(DECLARED_CLASS.findall(code))
    functions = set(DECLARED_FUNCTION.findall(code))
    c_header = "\n".join(path.read_text() for path in of_c)
    c_header = re.sub(r"/\*.*?\*/", "", c_header, flags=re.DOTALL)
    c_functions = set(DECLARED_C.findall(c_header))

    def is_public(symbol):
        if match := OF_CLASS.match(symbol) or OPERATOR.match(symbol):
            return match.group(1) in classes
        if match := FUNCTION.match(symbol):
            return match.group(1) in functions
        return symbol in c_functions

    shown = symbols(library)
    problems = [f"shown, but in no public header: {s}" for s in shown if not is_public(s)]
    problems += [f"declared in a public header, but hidden: {s}"
                 for s in symbols(inside) - shown if is_public(s)]
    problems += [f"declared in hocket/c.h, but not there: {s}" for s in c_functions - shown]
    promised = set(PROMISED.read_text().split())
    problems += [f"promised to C by 0.1, but gone: {s}" for s in promised - shown]
    for problem in sorted(problems):
        print(problem)
    print(f"exports: {len(shown)} symbols shown, {len(c_functions)} of them C's; "
          f"{len(problems)} are wrong")
    return 1 if problems or not c_functions else 0


if __name__ == "__main__":
    sys.exit(main())
