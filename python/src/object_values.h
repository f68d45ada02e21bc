// Conversion of Python objects to hocket's and back.
#pragma once

#include <span>
#include <unordered_set>

#include "arguments.h"
#include "hocket/object.h"

namespace hocket::python {

enum class Pickle { kRefuse, kAllow };

// The state while `read_object` reads one object.
struct Reading {
  Pickle pickle;
  bool changes = false;  // some part arrives with another type, such as a tensor as a NumPy array
  // The mutable parts read so far: lists, dicts, byte arrays, arrays. The object that is read keeps
  // these parts alive.
  std::unordered_set<PyObject*> changeable = {};
};

// Reads an object to be sent. If any part is not plain data, the whole object is pickled at once.
// Pickling the parts separately would turn two references to one part into two copies.
Object read_object(nb::handle value, Reading& reading);

nb::object from_object(const Object& object, Pickle pickle);
nb::list from_items(std::span<const Object> items, Pickle pickle);

}  // namespace hocket::python
