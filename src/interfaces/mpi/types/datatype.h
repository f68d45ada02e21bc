// MPI's datatypes: what they are made of, and where their bytes lie.
//
// A type is made by the function that has the name of MPI's, checked and flattened at once, and
// never changed. All counts and displacements are 64 bits wide. Facts and rules are the MPI
// standard's, version 5.0, chapter 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "interfaces/mpi/types/kinds.h"
#include "interfaces/mpi/types/result.h"
#include "interfaces/mpi/types/type_map.h"

namespace hocket::mpi {

// The constructor of a type. Numbers are those of the standard's binary interface, here and below.
enum class Combiner : int {
  kNamed = 101,
  kDup = 102,
  kContiguous = 103,
  kVector = 104,
  kHvector = 105,
  kIndexed = 106,
  kHindexed = 107,
  kIndexedBlock = 108,
  kHindexedBlock = 109,
  kStruct = 110,
  kSubarray = 111,
  kDarray = 112,
  kF90Real = 113,
  kF90Complex = 114,
  kF90Integer = 115,
  kResized = 116,
  kValueIndex = 117,
};
enum class Order : int { kC = 12, kFortran = 15 };
enum class Distribution : int { kNone = 16, kBlock = 17, kCyclic = 18 };
// MPI_DISTRIBUTE_DFLT_DARG. The binary interfaces have a positive number for it, which could be a
// block's size as well; who calls `darray` translates it, and back in an envelope.
inline constexpr std::int64_t kDefaultDarg = -1;
enum class TypeClass : int { kInteger = 192, kReal = 193, kComplex = 194 };

// Which form of the call made a type: that with int arguments, or the `_c` form. It decides only
// how an envelope shows the arguments.
enum class Form { kInt, kCount };

class Datatype;
using DatatypePtr = std::shared_ptr<const Datatype>;

// A value: what MPI_Type_get_envelope_c and MPI_Type_get_contents_c return, in their order. Types
// made by an int form have no counts.
struct Envelope {
  Combiner combiner = Combiner::kNamed;
  std::vector<int> integers = {};
  std::vector<std::int64_t> addresses = {};
  std::vector<std::int64_t> counts = {};
  std::vector<DatatypePtr> types = {};
};

// Immutable, so any thread may use it. It keeps the types that it was made of.
class Datatype {
 public:
  Datatype(TypeMap map, Envelope envelope);

  std::int64_t size() const noexcept { return map_.size(); }
  std::int64_t lb() const noexcept { return lb_; }
  std::int64_t extent() const noexcept { return extent_; }
  std::int64_t true_lb() const noexcept { return map_.true_lb(); }
  std::int64_t true_extent() const noexcept { return map_.true_extent(); }
  // Any number of these is one block of bytes, from `true_lb` on, in the order of the type map.
  bool is_contiguous() const noexcept { return is_contiguous_; }
  bool is_predefined() const noexcept;
  // The predefined type of all its elements, where it is one.
  std::optional<Kind> element_kind() const noexcept { return map_.element_kind(); }
  const Envelope& envelope() const noexcept { return envelope_; }
  const TypeMap& map() const noexcept { return map_; }

  // Copies `count` elements between a user's buffer and count * size() packed bytes. The product
  // has been found to fit (`packed_size`). Both are not null where there are bytes to copy, except
  // that a type with absolute addresses takes a null `user`, MPI_BOTTOM.
  void pack(const void* user, std::int64_t count, void* bytes) const;
  void unpack(const void* bytes, std::int64_t count, void* user) const;
  // The same for the packed bytes from `begin` to `end` of any number of elements; `bytes` is where
  // the one at `begin` is.
  void pack_part(const void* user, std::int64_t begin, std::int64_t end, void* bytes) const;
  void unpack_part(const void* bytes, std::int64_t begin, std::int64_t end, void* user) const;
  // count * size(), or a refusal: the count is negative, or the product does not fit.
  Result<std::int64_t> packed_size(std::int64_t count) const;

  // The data representation "external32": big-endian, with the standard's sizes. An integer that
  // does not fit into its standard's size is refused with MPI_ERR_CONVERSION.
  Result<std::int64_t> external32_size(std::int64_t count) const;
  std::optional<Refusal> pack_external32(const void* user, std::int64_t count, void* bytes) const;
  void unpack_external32(const void* bytes, std::int64_t count, void* user) const;
  // The same for the elements that are whole among the first `length` bytes. Returns the packed
  // bytes that they have in this process.
  std::int64_t unpack_external32_part(const void* bytes,
                                      std::int64_t length,
                                      std::int64_t count,
                                      void* user) const;

  // How many basic elements `bytes` packed bytes hold, a pair counting as two; absent where they
  // end within one (MPI_UNDEFINED). MPI_Get_elements.
  std::optional<std::int64_t> elements_in(std::int64_t bytes) const;

 private:
  TypeMap map_;
  Envelope envelope_;
  std::int64_t lb_, extent_;
  bool is_contiguous_;
};

// The type with which a file in external32 has the elements of `type`: of bytes, as many as each
// element takes there. Displacements in bytes stay as they are.
Result<DatatypePtr> in_external32(const DatatypePtr& type);

using Numbers = std::span<const std::int64_t>;

DatatypePtr predefined(Kind kind);
Result<DatatypePtr> dup(const DatatypePtr& old);
Result<DatatypePtr> contiguous(std::int64_t count, const DatatypePtr& old, Form form = Form::kInt);
// Strides and displacements of these are in extents of `old` ...
Result<DatatypePtr> vector(std::int64_t count,
                           std::int64_t blocklength,
                           std::int64_t stride,
                           const DatatypePtr& old,
                           Form form = Form::kInt);
Result<DatatypePtr> indexed(Numbers blocklengths,
                            Numbers displacements,
                            const DatatypePtr& old,
                            Form form = Form::kInt);
Result<DatatypePtr> indexed_block(std::int64_t blocklength,
                                  Numbers displacements,
                                  const DatatypePtr& old,
                                  Form form = Form::kInt);
// ... and of these in bytes.
Result<DatatypePtr> hvector(std::int64_t count,
                            std::int64_t blocklength,
                            std::int64_t stride_in_bytes,
                            const DatatypePtr& old,
                            Form form = Form::kInt);
Result<DatatypePtr> hindexed(Numbers blocklengths,
                             Numbers displacements_in_bytes,
                             const DatatypePtr& old,
                             Form form = Form::kInt);
Result<DatatypePtr> hindexed_block(std::int64_t blocklength,
                                   Numbers displacements_in_bytes,
                                   const DatatypePtr& old,
                                   Form form = Form::kInt);
Result<DatatypePtr> structure(Numbers blocklengths,
                              Numbers displacements_in_bytes,
                              std::span<const DatatypePtr> types,
                              Form form = Form::kInt);
Result<DatatypePtr> resized(const DatatypePtr& old,
                            std::int64_t lb,
                            std::int64_t extent,
                            Form form = Form::kInt);

struct Subarray {
  Numbers sizes, subsizes, starts;
  Order order = Order::kC;
};
Result<DatatypePtr> subarray(const Subarray& of, const DatatypePtr& old, Form form = Form::kInt);

struct Darray {
  std::int64_t size = 1, rank = 0;
  Numbers gsizes = {};
  std::span<const Distribution> distribs = {};
  Numbers dargs = {}, psizes = {};
  Order order = Order::kC;
};
Result<DatatypePtr> darray(const Darray& of, const DatatypePtr& old, Form form = Form::kInt);

// Fortran's types by precision and range, absent for MPI_UNDEFINED.
Result<DatatypePtr> f90_real(std::optional<int> precision, std::optional<int> range);
Result<DatatypePtr> f90_complex(std::optional<int> precision, std::optional<int> range);
Result<DatatypePtr> f90_integer(int range);
// MPI_Type_match_size.
Result<Kind> match_size(TypeClass type_class, std::int64_t bytes);
// MPI_Type_get_value_index: the predefined pair, absent where there is none of these two.
std::optional<Kind> value_index(Kind value, Kind index) noexcept;

}  // namespace hocket::mpi
