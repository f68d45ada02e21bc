// The standard's definition of a datatype, as plainly as can be: a list of basic elements with
// displacements. It is slow, and has nothing in common with src/interfaces/mpi.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "interfaces/mpi/types/kinds.h"

namespace hocket::mpi::model {

struct Entry {
  Kind kind = Kind::kByte;  // never a pair
  std::int64_t displacement = 0;
};

// A value.
struct TypeMap {
  std::vector<Entry> entries = {};
  // The marks that MPI_Type_create_resized sets, which parts keep.
  std::vector<std::int64_t> lower_marks = {};
  std::vector<std::int64_t> upper_marks = {};
  std::int64_t alignment = 1;

  static TypeMap of(Kind kind);
  // Appends `count` copies of `old`, an extent apart, the first at `displacement`.
  void append(const TypeMap& old, std::int64_t count, std::int64_t displacement);
  void resize(std::int64_t lb, std::int64_t extent);

  std::int64_t size() const;
  std::int64_t true_lb() const;
  std::int64_t true_ub() const;
  std::int64_t lb() const;
  std::int64_t extent() const;
  bool overlaps() const;

  // `user` is where the first element begins.
  std::vector<std::byte> pack(const std::byte* user, std::int64_t count) const;
  void unpack(const std::vector<std::byte>& packed, std::int64_t count, std::byte* user) const;
  std::optional<std::int64_t> elements_in(std::int64_t bytes) const;
};

// Selects elements of an array of `old`: those for which `has(indices)`, in the order in which they
// lie in memory. `is_fortran`: the first index runs fastest.
template <typename Has>
TypeMap array_part(const std::vector<std::int64_t>& sizes,
                   bool is_fortran,
                   const TypeMap& old,
                   const Has& has) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) all *= size;
  TypeMap made;
  std::vector<std::int64_t> indices(sizes.size());
  for (std::int64_t place = 0; place < all; ++place) {
    std::int64_t rest = place;
    for (std::size_t step = 0; step < sizes.size(); ++step) {
      const std::size_t i = is_fortran ? step : sizes.size() - 1 - step;
      indices[i] = rest % sizes[i];
      rest /= sizes[i];
    }
    if (has(indices)) made.append(old, 1, place * old.extent());
  }
  made.resize(0, all * old.extent());
  return made;
}

}  // namespace hocket::mpi::model
