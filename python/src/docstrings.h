// The docstrings of functions and classes. Their source is python/hocket/_hocket.pyi, which has
// each docstring beside the types. docstrings.py makes the table from that file.
#pragma once

#include <string_view>

namespace hocket::python {

struct Docstring {
  std::string_view name;
  const char* text;
};
inline constexpr Docstring kDocstrings[] = {
#include "docstrings.inc"
};

// Returns the docstring of "function", "Class" or "Class.method". If the table has no such name,
// the call does not compile.
consteval const char* docstring_of(std::string_view name) {
  for (const Docstring& one : kDocstrings) {
    if (one.name == name) return one.text;
  }
  throw "the stubs have no such docstring";
}

}  // namespace hocket::python
