"""Makes hocket.f90, hocket's module for Fortran: fortran.py INCLUDE OUTPUT.

hocket.f90.in has its constants, types and views. The interfaces of the functions follow from the
headers of C in INCLUDE. The tables below say what C's types leave open.
"""

import re
import sys
from pathlib import Path

HEADERS = ("c.h", "c_membership.h", "c_operators.h", "c_calls.h", "c_grid.h")
LINE = 100  # columns

VALUES = {
    "int": "integer(c_int)",
    "int32_t": "integer(c_int32_t)",
    "int64_t": "integer(c_int64_t)",
    "size_t": "integer(c_size_t)",
    "hocket_callback": "type(c_funptr)",
}
# Structs for which the module defines types. All other structs are passed by their address.
TYPES = re.compile(r"hocket_(?:array|strided|halo|operator|received|\w+_options)")
# Arguments that are arrays in C, and arguments that may be null.
LISTS = {"ranks", "hosts", "counts", "works", "results", "objects", "indices", "arrays", "shape",
         "periodic", "coordinates", "halo"}
MAY_BE_NULL = {"periodic", "from", "directory"}
# Functions whose arrays are lists of arrays, and functions whose arrays must not be null.
OF_LISTS = re.compile(r"_coalesced$")
NEEDS_ARRAYS = re.compile(r"_coalesced$|_sum$|(?:compressed|hierarchical)_all_reduce$")
OF_EXTREMES = re.compile(r"_arg(?:min|max)(?:_async)?$")
# Results that keep their old value if the call has none. So their intent is inout.
KEPT = {("comm_newcomers", "ranks"), ("wait_any", "index"), ("recv_object", "from"),
        ("work_objects", "from"),
        ("probe_now", "received")}
ALWAYS_RECEIVED = {"probe", "probe_now", "work_received"}


def functions(include):
    """Yields each function of the headers: its result, its name, and pairs of type and name."""
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", (include / "hocket" / header).read_text(), flags=re.DOTALL)
        for result, name, arguments in re.findall(
                r"^([\w ]+\**) ?\b(hocket_\w+)\(([^)]*)\);", text, re.MULTILINE):
            pairs = re.findall(r"([^,]*?)(\w+)\s*(?:,|$)", "" if arguments == "void" else arguments)
            yield result.strip(), name, [(type_.strip(), argument) for type_, argument in pairs]


def array_needs(function, argument):
    """Returns whether the array of an argument must be present, and whether it is a list of arrays."""
    if OF_EXTREMES.search(function):
        return argument in ("in", "values", "ranks"), False
    return bool(NEEDS_ARRAYS.search(function)), bool(OF_LISTS.search(function))


def declared(function, type_, argument):
    """Returns the Fortran declaration of a C argument, and its name in it."""
    base, stars, _ = type_.removeprefix("const ").partition("*")
    base, depth = base.strip(), type_.count("*")
    if not stars:
        return f"{VALUES[base]}, value", argument
    is_list = argument in LISTS and base != "hocket_array"
    is_null = argument in MAY_BE_NULL
    intent = "in" if type_.startswith("const ") or "const*" in type_ else "out"
    if (function.removeprefix("hocket_"), argument) in KEPT:
        intent = "inout"
    if depth == 2:
        what = "type(c_ptr)"
        if "const*" not in type_ and not is_list:
            intent = "out" if base in ("char", "void") else "inout"
    elif base == "char":
        what, is_list = "character(kind=c_char)", True
    elif base in VALUES:
        what = VALUES[base]
    elif TYPES.fullmatch(base):
        what = f"type({base})"
        if base == "hocket_array" and intent == "in":
            must, is_list = array_needs(function, argument)
            is_null = not must
        is_null |= base.endswith("_options")
        if base == "hocket_received":
            is_null = function.removeprefix("hocket_") not in ALWAYS_RECEIVED
    else:
        return "type(c_ptr), value", argument
    target = ", target" if base in ("hocket_array", "hocket_strided") and intent == "in" else ""
    optional = ", optional" if is_null else ""
    return f"{what}, intent({intent}){target}{optional}", argument + ("(*)" if is_list else "")


def interface(result, name, arguments):
    is_void = result == "void"
    kind = "subroutine" if is_void else f"{VALUES.get(result, 'type(c_ptr)')} function"
    end = "subroutine" if is_void else "function"
    names = ", ".join(argument for _, argument in arguments)
    head = f"    {kind} {name}({names}) bind(c)"
    if len(head) > LINE:
        head = f"    {kind} {name}( &\n      {names}) bind(c)"
    lines, last = [head, "      import"], None
    for type_, argument in arguments:
        declaration, shown = declared(name, type_, argument)
        if declaration == last:
            lines[-1] += f", {shown}"
        else:
            lines.append(f"      {declaration} :: {shown}")
        last = declaration
    return "\n".join([*lines, f"    end {end}"])


def main():
    include, output = map(Path, sys.argv[1:])
    template = (Path(__file__).parent / "hocket.f90.in").read_text()
    made = "\n".join(interface(*function) for function in functions(include))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(template.replace("    @INTERFACES@", made))


if __name__ == "__main__":
    main()
