// Replaces functions that a loaded library imports from other libraries.
#pragma once

namespace hocket::os {

// Replaces the function `name` in one loaded library. From then on this library calls
// `replacement`, which must have the same type and must never be unloaded. Other libraries keep the
// original. `inside` is the address of any function or object of the library. Returns false if the
// library does not import the name through a table of addresses, or if the system refuses the
// change.
bool replace_import(const void* inside, const char* name, const void* replacement) noexcept;

}  // namespace hocket::os
