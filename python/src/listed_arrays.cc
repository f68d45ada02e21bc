#include "listed_arrays.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "arguments.h"
#include "hocket/error.h"

namespace hocket::python {
namespace {

// Keeps all arrays of a list, and their leases.
struct ListLease final : Lease {
  std::vector<Array> arrays;
  std::vector<nb::object> objects;
};

std::uintptr_t address(const Array& array) { return reinterpret_cast<std::uintptr_t>(array.data); }

void require_alike(const std::vector<Array>& arrays, const char* name) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    require_c_order(arrays[i], element_name(name, i).c_str());
    if (arrays[i].is_on_gpu()) {
      throw InvalidArgument(element_name(name, i) +
                            " lies in a GPU's memory; lists of arrays are for host memory. Give "
                            "one array, with the parts one after the other");
    }
    if (arrays[i].dtype != arrays[0].dtype) {
      throw InvalidArgument(element_name(name, i) + " is " + std::string(name_of(arrays[i].dtype)) +
                            " and " + element_name(name, 0) + " is " +
                            std::string(name_of(arrays[0].dtype)) + "; they must have one dtype");
    }
  }
}

}  // namespace

bool is_list(nb::handle object) noexcept {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

ListedArrays read_list(nb::handle list, const char* name, Array (*read)(nb::handle, const char*)) {
  auto kept = std::make_unique<ListLease>();
  for (nb::handle one : list) {
    kept->arrays.push_back(read(one, element_name(name, kept->arrays.size()).c_str()));
    kept->objects.push_back(nb::borrow(one));
  }
  require_alike(kept->arrays, name);
  std::uintptr_t first = UINTPTR_MAX, last = 0;
  const std::size_t size = kept->arrays.empty() ? 1 : size_of(kept->arrays[0].dtype);
  for (const Array& array : kept->arrays) {
    if (array.count == 0) continue;
    first = std::min(first, address(array));
    last = std::max(last, address(array) + array.count * size);
  }
  ListedArrays result;
  for (std::size_t i = 0; i < kept->arrays.size(); ++i) {
    const Array& array = kept->arrays[i];
    const std::size_t distance = array.count == 0 ? 0 : address(array) - first;
    if (distance % size != 0) {
      throw InvalidArgument(element_name(name, i) +
                            " does not begin at a whole number of elements from " +
                            "the others; copy it to memory of its own");
    }
    result.counts.push_back(array.count);
    result.places.push_back(distance / size);
  }
  if (!kept->arrays.empty()) result.hull.dtype = kept->arrays[0].dtype;
  if (last != 0) {
    result.hull.data = reinterpret_cast<void*>(first);
    result.hull.count = (last - first) / size;
  }
  // An array that is made like the hull gets the package and memory of the hull's object.
  if (!kept->objects.empty()) result.hull.object = kept->objects[0];
  result.hull.lease = std::move(kept);
  return result;
}

void require_one_each(const ListedArrays& listed, std::size_t ranks, const char* name) {
  if (listed.counts.size() == ranks) return;
  throw InvalidArgument(
      std::string(name) + " is a list of " + std::to_string(listed.counts.size()) +
      " arrays, expected one for each of the " + std::to_string(ranks) + " ranks");
}

}  // namespace hocket::python
