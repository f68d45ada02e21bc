// Plain values that Python passes: numbers, names, switches. Errors name the argument, and reach
// the other ranks of a collective call. nanobind's own conversions would report "incompatible
// function arguments" or "bad_cast", before those ranks could be told.
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

// The name of a value's type, for people: as in Python's own messages, "numpy.ndarray".
std::string name_of_type(nb::handle value);
// The same with its article, "an int"; "None" for None.
std::string type_in_words(nb::handle value);

// Whole numbers of any type with `__index__`: no floats, no text.
std::int64_t long_argument(nb::handle value, const char* name);
int integer_argument(nb::handle value, const char* name);
std::vector<std::int64_t> long_list_argument(nb::handle values, const char* name);

// True or False, Python's or NumPy's.
bool flag_argument(nb::handle value, const char* name);

std::string text_argument(nb::handle value, const char* name);
// The same for a text that people read, such as a reason: lone surrogates become "\\udcff".
std::string words_argument(nb::handle value, const char* name);
// Throws InvalidArgument if the value is not iterable. Consumes nothing of an iterator.
void require_iterable(nb::handle value, const char* name, const char* wanted);
// A path in the file system's encoding, with any bytes: str, bytes or os.PathLike.
std::string path_argument(nb::handle value, const char* name);
// Names of engines, best first; empty for None.
std::vector<std::string> engines_argument(nb::handle engines);

// "arrays[2]": an element of an argument that is a list.
std::string element_name(const char* name, std::size_t i);

// A view of the object's bytes, valid as long as the object.
std::span<const std::byte> bytes_of(const nb::bytes& bytes) noexcept;

// Takes the result of a Python C function. Throws the Python error if the result is null.
nb::object steal_or_throw(PyObject* object);

// Text for people. It may hold bytes from the environment, a file name or another rank, cut
// anywhere. Bytes that are not UTF-8 are shown as numbers.
nb::str to_text(std::string_view text);

}  // namespace hocket::python
