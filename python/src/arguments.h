// Reads plain values that Python passes: numbers, names, switches. An error names the argument. In
// a collective call, hocket also tells the other ranks of the error, so it reads these values
// itself. nanobind's own conversions would raise "incompatible function arguments" or "bad_cast"
// before hocket could tell the other ranks.
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

// Returns the name of a value's type as in Python's own messages: "numpy.ndarray".
std::string name_of_type(nb::handle value);
// Returns the type's name with an article, such as "an int". Returns "None" for None.
std::string type_in_words(nb::handle value);

// Reads whole numbers of any type with `__index__`. Throws InvalidArgument for floats and text.
std::int64_t long_argument(nb::handle value, const char* name);
int integer_argument(nb::handle value, const char* name);
std::vector<std::int64_t> long_list_argument(nb::handle values, const char* name);

// Reads a switch: True or False, of Python or of NumPy.
bool flag_argument(nb::handle value, const char* name);

std::string text_argument(nb::handle value, const char* name);
// Reads a text for people, such as a reason. Lone surrogates become escapes such as "\\udcff".
std::string words_argument(nb::handle value, const char* name);
// Throws InvalidArgument if the value is not iterable. Consumes nothing of an iterator.
void require_iterable(nb::handle value, const char* name, const char* wanted);
// Reads a path: str, bytes or os.PathLike. Returns it in the file system's encoding, which may be
// any bytes.
std::string path_argument(nb::handle value, const char* name);
// Reads names of engines, best first. Returns an empty list for None.
std::vector<std::string> engines_argument(nb::handle engines);

// Returns the name of element `i` of an argument that is a list, such as "arrays[2]".
std::string element_name(const char* name, std::size_t i);

// Returns a view of the object's bytes. The view is valid as long as the object.
std::span<const std::byte> bytes_of(const nb::bytes& bytes) noexcept;

// Takes the result of a Python C function. Throws the Python error if the result is null.
nb::object steal_or_throw(PyObject* object);

// Converts text for people. It may hold bytes from the environment, a file name or another rank,
// and it may be cut within a character. Bytes that are not UTF-8 become escapes such as "\\xff".
nb::str to_text(std::string_view text);

}  // namespace hocket::python
