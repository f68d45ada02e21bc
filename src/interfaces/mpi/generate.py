#!/usr/bin/env python3
"""Makes the C interface of MPI from the table interface.txt.

    generate.py standard|mpich FOLDER

writes into FOLDER:

    mpi.h           the header of that binary interface
    mpi_calls.h     declarations of the functions in src/interfaces/mpi that do the work
    mpi_entries.cc  the exported functions, with their large-count and PMPI_ forms
    mpi_tables.cc   the predefined handles with their names, error classes

    generate.py trampoline FOLDER

writes trampoline_entries.cc: constants and functions for MPItrampoline, over the standard's interface.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

HANDLES = ("Comm", "Group", "Datatype", "Op", "Request", "Message", "Info", "Errhandler", "Session",
           "Win", "File")
TOOL_HANDLES = ("enum", "cvar_handle", "pvar_handle", "pvar_session", "event_registration",
                "event_instance")
# Objects with an error handler. A call reports an error to the handler of its first argument of
# these types.
REPORTING = ("MPI_Comm", "MPI_Win", "MPI_File", "MPI_Session")
# Return types other than error codes.
VALUES = ("double", "MPI_Aint")

STATUS = {
    "standard": "  int MPI_SOURCE;\n  int MPI_TAG;\n  int MPI_ERROR;\n  int MPI_internal[5];\n",
    "mpich": "  int count_lo;\n  int count_hi_and_cancelled;\n  int MPI_SOURCE;\n  int MPI_TAG;\n"
             "  int MPI_ERROR;\n",
}
# MPICH's interface also has Fortran statuses, which have the layout of C's.
FORTRAN_STATUSES = "\n".join([
    "typedef MPI_Status MPI_F08_status;",
    *(f"extern MPI_{kind}* MPI_{short}_STATUS{several}_IGNORE;"
      for kind, short in (("Fint", "F"), ("F08_status", "F08")) for several in ("", "ES")),
    *(f"int {profiling}MPI_Status_{there}2{here}(const MPI_{kinds[there]}* from, MPI_{kinds[here]}* to);"
      for profiling in ("", "P") for kinds in [{"c": "Status", "f": "Fint", "f08": "F08_status"}]
      for there in kinds for here in kinds if there != here)])
CALLBACK_ALIASES = ("Comm", "Win", "File", "Session")


@dataclass(frozen=True)
class Parameter:
    type: str  # "const int*": arrays are pointers here
    name: str
    tail: str = ""  # "[][3]"
    is_array: bool = False

    @property
    def declared(self) -> str:
        return f"{self.type} {self.name}{self.tail}"


@dataclass(frozen=True)
class Function:
    mark: str
    result: str
    name: str  # without its prefix
    parameters: tuple[Parameter, ...]  # "int|MPI_Count" is a type with two forms
    prefix: str = "MPI_"  # MPIX_: an extension of MPICH or Open MPI

    @property
    def has_large_form(self) -> bool:
        return any("|" in p.type for p in self.parameters)

    def form(self, large: bool) -> Function:
        def pick(p: Parameter) -> Parameter:
            return replace(p, type=re.sub(r"(\w+)\|(\w+)", r"\2" if large else r"\1", p.type))
        return replace(self, name=self.name + "_c" * large,
                       parameters=tuple(pick(p) for p in self.parameters))

    @property
    def list(self) -> str:
        return ", ".join(p.declared for p in self.parameters) or "void"


@dataclass(frozen=True)
class Constant:
    name: str
    type: str
    value: str


@dataclass
class Interface:
    callbacks: list[tuple[str, str, str]]
    constants: list[Constant]
    functions: list[Function]


def parse_parameter(text: str) -> Parameter:
    text = text.strip()
    if text == "...":
        return Parameter("...", "")
    suffix = ""
    match = re.fullmatch(r"(.*?)(\w+)((?:\[\w*\])*)", text)
    kind, name, arrays = match.groups()
    if arrays == "[]":
        suffix = "*"
    elif arrays:  # an array of arrays: char argv[][n], int ranges[][3]
        return Parameter(kind.strip(), name, arrays)
    return Parameter(re.sub(r"\s*\*", "*", kind.strip()) + suffix, name, is_array=suffix != "")


def read(path: Path, abi: str) -> Interface:
    made = Interface([], [], [])
    part = ""
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            part = line.strip("[]")
        elif part == "callbacks":
            name, result, arguments = re.fullmatch(r"(\w+) (\w+)(\(.*\))", line).groups()
            made.callbacks.append((name, result, arguments))
        elif part == "constants":
            name, kind, standard, mpich = line.split()
            value = standard if abi == "standard" else mpich
            if value != "-":
                made.constants.append(Constant(name, kind, value))
        else:
            made.functions.append(parse_function(line))
    return made


def parse_function(line: str) -> Function:
    form = re.fullmatch(r"(.) (\w+) (MPIX?_)(\w+)\((.*)\)", line)
    mark, result, prefix, name, arguments = form.groups()
    parts = [] if arguments == "void" else arguments.split(",")
    return Function(mark, result, name, tuple(parse_parameter(p) for p in parts), prefix)


# --- The header -----------------------------------------------------------------------------------


def constant_line(c: Constant, abi: str) -> str:
    if c.value == "symbol":
        if c.name in ("MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY"):
            return f"extern int* const {c.name};"
        if c.name == "MPI_DUP_FN":
            return ("int MPI_DUP_FN(MPI_Comm comm, int keyval, void* extra_state, void* value_in, "
                    "void* value_out, int* flag);")
        return f"#define {c.name} (({c.type})MPI_DUP_FN)"
    if c.type == "int":
        return f"#define {c.name} ({c.value})" if c.value.startswith("-") else \
            f"#define {c.name} {c.value}"
    return f"#define {c.name} (({c.type}){c.value})"


def header(interface: Interface, abi: str) -> str:
    handle = "typedef struct MPI_ABI_{0}* MPI_{0};" if abi == "standard" else "typedef int MPI_{0};"
    lines = ["/* The standard's interface to MPI, carried by hocket. Made by generate.py. */",
             "#ifndef HOCKET_MPI_H", "#define HOCKET_MPI_H", "#include <stdint.h>",
             "#if defined(__cplusplus)", 'extern "C" {', "#endif",
             "typedef intptr_t MPI_Aint;", "typedef int64_t MPI_Offset;",
             "typedef int64_t MPI_Count;" if abi == "standard" else "typedef long long MPI_Count;",
             "typedef int MPI_Fint;",
             f"typedef struct MPI_Status {{\n{STATUS[abi]}}} MPI_Status;"]
    if abi == "mpich":
        lines[8] = "typedef long long MPI_Offset;"
    for name in HANDLES:
        lines.append("typedef struct ADIOI_FileD* MPI_File;" if (abi, name) == ("mpich", "File")
                     else handle.format(name))
    lines += [f"typedef struct HOCKET_MPI_T_{name}* MPI_T_{name};" for name in TOOL_HANDLES]
    lines += ["typedef int MPI_T_cb_safety;", "typedef int MPI_T_source_order;"]
    lines += [f"typedef {result} ({name}){arguments};"
              for name, result, arguments in interface.callbacks]
    for name in CALLBACK_ALIASES:
        lines.append(f"typedef MPI_{name}_errhandler_function MPI_{name}_errhandler_fn;")
    lines.append("typedef MPI_Comm_errhandler_function MPI_Handler_function;")
    lines += [constant_line(c, abi) for c in interface.constants]
    for declaration in declarations(interface, abi):
        lines += [f"{declaration.result} {profiling}{declaration.prefix}{declaration.name}"
                  f"({declaration.list});" for profiling in ("", "P")]
    if abi == "mpich":
        lines.append(FORTRAN_STATUSES)
    lines += ["#if defined(__cplusplus)", "}", "#endif", "#endif", ""]
    return "\n".join(lines)


def declarations(interface: Interface, abi: str) -> list[Function]:
    made = []
    for f in interface.functions:
        made.append(f.form(False))
        if f.has_large_form:
            made.append(f.form(True))
    return made + [f for f, _ in conversions(abi)]


def conversions(abi: str) -> list[tuple[Function, str]]:
    """Returns the functions that convert handles to and from integers, with their bodies."""
    made = []
    pairs = [("toint", "fromint", "int")] + [("c2f", "f2c", "MPI_Fint")] * (abi == "mpich")
    for name in HANDLES:
        short = "Type" if name == "Datatype" else name
        for there, back, integer in pairs:
            to = Function("!", integer, f"{short}_{there}", (Parameter(f"MPI_{name}", "handle"),))
            of = Function("!", f"MPI_{name}", f"{short}_{back}", (Parameter(integer, "value"),))
            made.append((to, "hocket::mpi::integer_of(handle)"))
            made.append((of, f"hocket::mpi::handle_of<MPI_{name}>(value)"))
    return made


# --- The declarations of the functions that do the work -------------------------------------------


def core_type(kind: str) -> str:
    """Returns the type by which src/interfaces/mpi takes a parameter of int or large counts."""
    if "|" not in kind:
        return kind
    if kind.startswith("const"):
        return "Counts"
    if kind.endswith("*") and "function" not in kind:
        return "CountOut"
    if "function" in kind:
        return "ConversionFunction" if "conversion" in kind else "OpFunction"
    return "MPI_Count"


def families(interface: Interface) -> dict[str, tuple[Function, str]]:
    """Map the name of each immediate and persistent form to its function and the form."""
    made = {}
    for f in interface.functions:
        if f.mark == "*":
            immediate = "I" + f.name[0].lower() + f.name[1:]
            made[immediate] = (f, "immediate")
            made[f.name + "_init"] = (f, "persistent")
    return made


def begins(f: Function) -> list[Parameter]:
    """Returns the parameters of the function that begins a call: without the status or request."""
    return [p for p in f.parameters if p.type != "MPI_Status*"]


def calls_header(interface: Interface) -> str:
    lines = ["// The functions of src/interfaces/mpi that do the work of MPI's functions. Made by generate.py.",
             "#pragma once", '#include "interfaces/mpi/call_types.h"', "namespace hocket::mpi::call {"]
    for f in interface.functions:
        if f.mark == "-" or f.name.startswith("T_"):
            continue
        parameters = begins(f) if f.mark == "*" else list(f.parameters)
        listed = [replace(p, type=core_type(p.type)).declared for p in parameters]
        if f.mark == "*":
            listed.insert(0, "How how")
        result = "Pending" if f.mark == "*" else f.result if f.result in VALUES else "void"
        lines.append(f"{result} {f.name}({', '.join(listed)});")
    return "\n".join([*lines, "}  // namespace hocket::mpi::call", ""])


# --- The exported functions -----------------------------------------------------------------------


def scope(f: Function) -> str:
    """Returns the expression for the object whose error handler is called."""
    if f.name.startswith("File_") or f.name == "Register_datarep":
        of = {"MPI_File": "{}", "MPI_File*": "*{}"}
        files = [of[p.type].format(p.name) for p in f.parameters if p.type in of]
        is_open = f.name == "File_open"  # the call's file does not exist yet
        return f"Scope::of({files[0] if files and not is_open else 'MPI_FILE_NULL'})"
    if f.name == "Win_free":
        return "Scope{.win = *win}"
    for p in f.parameters:
        if p.type in REPORTING:
            return {
                "MPI_Comm": f"Scope{{{p.name}}}",
                "MPI_Session": f"Scope{{.session = {p.name}}}",
                "MPI_Win": f"Scope{{.win = {p.name}}}",
            }.get(p.type, "Scope{}")
    return "Scope{}"


# Types of parameters that are arrays with an entry for each rank or neighbour.
ARRAYS = ("const int*", "const MPI_Count*", "const MPI_Aint*", "const MPI_Datatype*")


def lengths_of(f: Function) -> str:
    """Returns the expression for the lengths of a collective's arrays."""
    if f.name.startswith("Neighbor"):
        return "lengths_of_neighbours(comm)"
    if f.name == "Reduce_scatter":
        return "lengths_of_members(comm)"
    if any(p.name == "root" for p in f.parameters):
        return "lengths_at_root(comm, root)"
    return "lengths_among_all(comm, sendbuf)"


def tool_body(f: Function) -> str:
    """Returns the body of a tool interface call. There are no variables, events or categories."""
    names = ", ".join(p.name for p in f.parameters)
    if f.mark == "+":
        return f"return tool::{f.name[2:]}({names});"
    first = f.parameters[0]
    if f.name.endswith("_get_num"):
        return f"return tool::give_none({names});"
    if first.type == "MPI_T_pvar_session":
        if f.name == "T_pvar_handle_alloc":
            return "return tool::refuse_in(session, MPI_T_ERR_INVALID_INDEX);"
        return "return tool::refuse_in(session, MPI_T_ERR_INVALID_HANDLE);"
    codes = {"int": "INDEX", "const char*": "NAME"}
    return f"return tool::refuse(MPI_T_ERR_INVALID_{codes.get(first.type, 'HANDLE')});"


def body(f: Function, own: Function, family: dict[str, tuple[Function, str]]) -> str:
    """Returns the body of an exported function. `f`: its row of the table; `own`: the exported form."""
    if f.name.startswith("T_"):
        return tool_body(f)
    name = f'"{own.prefix}{own.name}"'
    if f.name in family:
        begun, form = family[f.name]
        names = ", ".join(p.name for p in begins(begun))
        call = f"call::{begun.name}(How::kImmediate{', ' if names else ''}{names})"
        if form == "immediate":
            return (f"return guarded({name}, {scope(own)}, [&] {{ hand_out(request, {call}, "
                    f"{scope(own)}); }});")
        kept = [p.name for p in own.parameters if p.type in ARRAYS]
        copies = ""
        for p in own.parameters:
            count = "n.sent" if p.name.startswith("s") else "n.received"
            owned = {"MPI_Datatype": f"OwnHandle({p.name}, process().types)",
                     "MPI_Op": f"OwnHandle({p.name}, process().ops)",
                     "const MPI_Datatype*": f"OwnTypes({p.name}, {count})"}.get(p.type)
            if p.type in ARRAYS and owned is None:
                owned = f"CopiedArray({p.name}, {count})"
            if p.name == "comm":
                is_collective = any(q.type == "MPI_Info" for q in own.parameters)
                owned = "OwnComm(comm)" if is_collective else "OwnHandle(comm, process().comms)"
            if owned is not None:
                call = re.sub(rf"\b{p.name}\b", f"{p.name}.get()", call)
                copies += f", {p.name} = {owned}"
        lengths = f"const ArrayLengths n = {lengths_of(begun)}; " if kept else ""
        return (f"return guarded({name}, {scope(own)}, [&] {{ {lengths}hand_out_persistent(request, "
                f"[={copies}] {{ return {call}; }}, {scope(own)}); }});")
    if f.mark == "-":
        return f"return not_carried({name}, {scope(own)});"
    names = ", ".join(p.name for p in own.parameters if p.name)
    if f.mark == "*":
        status = "status" if any(p.type == "MPI_Status*" for p in own.parameters) else "nullptr"
        names = ", ".join(p.name for p in begins(f))
        return (f"return guarded({name}, {scope(own)}, [&] {{ complete(call::{f.name}"
                f"(How::kBlocking{', ' if names else ''}{names}), {status}); }});")
    if own.result in VALUES:
        return f"return call::{f.name}({names});"
    guard = "guarded_always" if f.mark == "!" else "guarded"
    return f"return {guard}({name}, {scope(own)}, [&] {{ call::{f.name}({names}); }});"


def places_checked(own: Function) -> str:
    """Returns statements that refuse null where a call writes a number or a handle."""
    written = re.compile(r"(int|MPI_(Aint|Count|Offset|" + "|".join(HANDLES) + r"))\*")
    places = [p.name for p in own.parameters
              if written.fullmatch(p.type) and not p.is_array and "weights" not in p.name
              and p.name not in ("argc", "numbers")
              or p.type == "void*" and p.name in ("attribute_val", "baseptr")
              and not own.name.endswith(("set_attr", "Attr_put"))]
    return "".join(f'require({p} != nullptr, MPI_ERR_ARG, "{p} is null"); ' for p in places)


def entry(own: Function, text: str) -> str:
    text = text.replace("[&] { ", "[&] { " + places_checked(own), 1)
    name = own.prefix + own.name
    return (f"{own.result} P{name}({own.list}) {{ {text} }}\n"
            f'{own.result} {name}({own.list}) __attribute__((weak, alias("P{name}")));')


def entries(interface: Interface, abi: str) -> str:
    lines = ["// The exported functions. Made by generate.py.", '#include "mpi_calls.h"',
             '#include "interfaces/mpi/entry.h"', '#include "interfaces/mpi/process.h"',
             '#include "interfaces/mpi/tool.h"',
             '#pragma GCC diagnostic ignored "-Wunused-parameter"',
             "using namespace hocket::mpi;", "#pragma GCC visibility push(default)",
             'extern "C" {']
    family = families(interface)
    for f in interface.functions:
        for large in (False, True) if f.has_large_form else (False,):
            own = f.form(large)
            lines.append(entry(own, body(f, own, family)))
    for f, expression in conversions(abi):
        lines.append(entry(f, f"return {expression};"))
    return "\n".join([*lines, "}", "#pragma GCC visibility pop", ""])


def tables(interface: Interface) -> str:
    lines = ["// The predefined handles and error classes. Made by generate.py.",
             '#include "interfaces/mpi/abi.h"', "namespace hocket::mpi {"]
    for kind in ("Datatype", "Op"):
        seen = set()
        rows = []
        for c in interface.constants:
            if c.type == f"MPI_{kind}" and c.value not in seen and "NULL" not in c.name:
                seen.add(c.value)
                rows.append(f'    {{{c.name}, "{c.name}"}},')
        lines += [f"const Named<MPI_{kind}> kNamed{kind}s[] = {{", *rows, "};",
                  f"const std::size_t kNamed{kind}Count = {len(rows)};"]
    lines.append("const Named<int> kErrorClasses[] = {")
    rows = [f'    {{{c.name}, "{c.name}"}},' for c in interface.constants
            if re.match(r"MPIX?_(ERR_|SUCCESS)", c.name) and c.type == "int"
            and c.name != "MPI_ERR_LASTCODE"]
    lines += [*rows, "};", f"const std::size_t kErrorClassCount = {len(rows)};", "}", ""]
    return "\n".join(lines)


# --- For MPItrampoline ----------------------------------------------------------------------------


BY_HAND = ("Comm_free", "Grequest_start")  # trampoline.cc has these functions


def converted(p: Parameter, count: str) -> str:
    """Returns the argument for the standard's function. Statuses are converted: their layout differs."""
    if not p.type.endswith("MPI_Status*"):
        return p.name
    if p.type.startswith("const"):
        return f"ReadStatus({p.name})"
    if p.name == "statuses":
        return f"CopiedStatuses(statuses, {count})"
    return f"CopiedStatus({p.name})"


def trampoline_entry(f: Function) -> str:
    count = next((p.name for p in f.parameters if p.name in ("count", "incount")), "")
    theirs = [replace(p, type=p.type.replace("MPI_Status", "TrampolineStatus")) for p in f.parameters]
    arguments = ", ".join(converted(p, count) for p in f.parameters)
    return (f"{f.result} MPIABI_{f.name}({', '.join(p.declared for p in theirs) or 'void'}) "
            f"{{ return PMPI_{f.name}({arguments}); }}")


def handles_of_fortran() -> list[str]:
    """Returns the functions that convert handles to and from Fortran's integers: MPI_Comm_c2f, ..."""
    made = []
    for name in HANDLES:
        short = "Type" if name == "Datatype" else name
        made.append(f"MPI_Fint MPIABI_{short}_c2f(MPI_{name} handle) "
                    f"{{ return PMPI_{short}_toint(handle); }}")
        made.append(f"MPI_{name} MPIABI_{short}_f2c(MPI_Fint value) "
                    f"{{ return PMPI_{short}_fromint(value); }}")
    return made


def trampoline(interface: Interface) -> str:
    lines = ["// The symbols that MPItrampoline looks up. Made by generate.py.",
             '#include "interfaces/mpi/trampoline/trampoline.h"', "using namespace hocket::mpi;",
             "#pragma GCC visibility push(default)"]
    for c in interface.constants:
        if c.name.startswith("MPI_") and not c.name.startswith("MPI_T_"):
            lines.append(f'extern "C" {c.type} const MPIABI_{c.name[4:]} = {c.name};')
    lines.append('extern "C" {')
    for f in interface.functions:
        by_hand = f.name in BY_HAND or any(p.type == "..." for p in f.parameters)
        if not f.name.startswith("T_") and not by_hand and f.prefix == "MPI_":
            lines.append(trampoline_entry(f.form(False)))
    return "\n".join([*lines, *handles_of_fortran(), "}", "#pragma GCC visibility pop", ""])


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main() -> None:
    abi, folder = sys.argv[1], Path(sys.argv[2])
    table = Path(__file__).with_name("interface.txt")
    folder.mkdir(parents=True, exist_ok=True)
    if abi == "trampoline":
        write(folder / "trampoline_entries.cc", trampoline(read(table, "standard")))
        return
    interface = read(table, abi)
    write(folder / "mpi.h", header(interface, abi))
    write(folder / "mpi_calls.h", calls_header(interface))
    write(folder / "mpi_entries.cc", entries(interface, abi))
    write(folder / "mpi_tables.cc", tables(interface))


if __name__ == "__main__":
    main()
