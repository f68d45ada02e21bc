// Plain values that Python passes: numbers, names, switches. What is wrong with one is said with
// its name; nanobind's own conversions would say "incompatible function arguments" or "bad_cast",
// and before the other ranks of a collective call could be told.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::python {

namespace nb = nanobind;

// The name of its type, for people: as Python's own messages have it, "numpy.ndarray".
std::string name_of_type(nb::handle value);
// The same with its article, "an int"; of None it is "None".
std::string type_in_words(nb::handle value);

// Whole numbers of any type that says it is one (`__index__`): no floats, no text.
std::int64_t long_argument(nb::handle value, const char* name);
int integer_argument(nb::handle value, const char* name);
std::vector<std::int64_t> long_list_argument(nb::handle values, const char* name);

// True or False, Python's or NumPy's.
bool flag_argument(nb::handle value, const char* name);

std::string text_argument(nb::handle value, const char* name);
// Throws InvalidArgument of what cannot be gone through; takes nothing from an iterator.
void require_iterable(nb::handle value, const char* name, const char* wanted);
// As the file system has it, whatever its bytes: str, bytes or os.PathLike.
std::string path_argument(nb::handle value, const char* name);
// Names of engines, best first; None is none.
std::vector<std::string> engines_argument(nb::handle engines);

// "arrays[2]": an element of an argument that is a list.
std::string element_name(const char* name, std::size_t i);

// The bytes lie in the object, as long as that is.
std::span<const std::byte> bytes_of(const nb::bytes& bytes) noexcept;

// What one of Python's C functions has given; its error where it gave nothing.
nb::object steal_or_throw(PyObject* object);

// For people. Text of hocket's may hold what came from the environment, from a file's name or from
// another rank, cut anywhere: bytes that are no UTF-8 are shown as numbers.
nb::str to_text(std::string_view text);

}  // namespace hocket::python
