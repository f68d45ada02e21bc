// Values of objects: Python's to hocket's and back.
#pragma once

#include <span>
#include <unordered_set>

#include "arguments.h"
#include "hocket/object.h"

namespace hocket::python {

enum class Pickle { kRefuse, kAllow };

// One object's way to hocket.
struct Reading {
  Pickle pickle;
  bool changes = false;  // some of it arrives as of another type: a tensor as a NumPy array
  // The lists, dicts, byte arrays and arrays that were met. The object keeps them alive.
  std::unordered_set<PyObject*> changeable = {};
};

// Reads one object that is sent. An object that is not all plain is pickled as a whole, so that
// parts of it that are the same stay the same.
Object read_object(nb::handle value, Reading& reading);

nb::object from_object(const Object& object, Pickle pickle);
nb::list from_items(std::span<const Object> items, Pickle pickle);

}  // namespace hocket::python
