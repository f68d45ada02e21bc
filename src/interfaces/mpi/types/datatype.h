// MPI's datatypes: their parts, and the places of their bytes.
//
// The functions below that make types have the names of MPI's constructors. They check the
// arguments and flatten the type map at once. A type never changes. All counts and displacements
// have 64 bits. Facts and rules are the MPI standard's, version 5.0, chapter 5.
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

// The constructor of a type. Here and below, numbers are those of the standard's binary interface.
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
// MPI_DISTRIBUTE_DFLT_DARG. In the binary interfaces it is positive, and could also be a block's
// size. So the callers of `darray` translate it, and translate it back in envelopes.
inline constexpr std::int64_t kDefaultDarg = -1;
enum class TypeClass : int { kInteger = 192, kReal = 193, kComplex = 194 };

// The form of the call that made a type: with int arguments, or the `_c` form. It decides only how
// an envelope shows the arguments.
enum class Form { kInt, kCount };

class Datatype;
using DatatypePtr = std::shared_ptr<const Datatype>;

// A value: the results of MPI_Type_get_envelope_c and MPI_Type_get_contents_c, in their order. A
// type that was made by the int form has no counts.
struct Envelope {
  Combiner combiner = Combiner::kNamed;
  std::vector<int> integers = {};
  std::vector<std::int64_t> addresses = {};
  std::vector<std::int64_t> counts = {};
  std::vector<DatatypePtr> types = {};
};

// Immutable, so any thread may use it. It keeps the types alive that it was made of.
class Datatype {
 public:
  Datatype(TypeMap map, Envelope envelope);

  std::int64_t size() const noexcept { return map_.size(); }
  std::int64_t lb() const noexcept { return lb_; }
  std::int64_t extent() const noexcept { return extent_; }
  std::int64_t true_lb() const noexcept { return map_.true_lb(); }
  std::int64_t true_extent() const noexcept { return map_.true_extent(); }
  // True if any number of elements forms one block of bytes from `true_lb` on, in the order of the
  // type map.
  bool is_contiguous() const noexcept { return is_contiguous_; }
  bool is_predefined() const noexcept;
  // Returns the predefined type of all basic elements. Absent: their types differ.
  std::optional<Kind> element_kind() const noexcept { return map_.element_kind(); }
  const Envelope& envelope() const noexcept { return envelope_; }
  const TypeMap& map() const noexcept { return map_; }

  // Copies `count` elements between a user's buffer and count * size() packed bytes. The caller has
  // checked by `packed_size` that the product fits. If there are bytes to copy, neither pointer is
  // null, except `user` of a type with absolute addresses (MPI_BOTTOM).
  void pack(const void* user, std::int64_t count, void* bytes) const;
  void unpack(const void* bytes, std::int64_t count, void* user) const;
  // Does the same for the packed bytes [begin, end) of any number of elements. `bytes` points to
  // the byte at `begin`.
  void pack_part(const void* user, std::int64_t begin, std::int64_t end, void* bytes) const;
  void unpack_part(const void* bytes, std::int64_t begin, std::int64_t end, void* user) const;
  // Returns count * size(), or a refusal if the count is negative or the product does not fit.
  Result<std::int64_t> packed_size(std::int64_t count) const;

  // Convert to and from the data representation "external32": big-endian, with the standard's
  // sizes. An integer that does not fit into the standard's size is refused with
  // MPI_ERR_CONVERSION.
  Result<std::int64_t> external32_size(std::int64_t count) const;
  std::optional<Refusal> pack_external32(const void* user, std::int64_t count, void* bytes) const;
  void unpack_external32(const void* bytes, std::int64_t count, void* user) const;
  // Unpacks only elements that lie wholly in the first `length` bytes. Returns their packed size in
  // this process.
  std::int64_t unpack_external32_part(const void* bytes,
                                      std::int64_t length,
                                      std::int64_t count,
                                      void* user) const;

  // Returns the number of basic elements in `bytes` packed bytes; a pair counts as two. Absent if
  // the bytes end within an element. See MPI_Get_elements.
  std::optional<std::int64_t> elements_in(std::int64_t bytes) const;

 private:
  TypeMap map_;
  Envelope envelope_;
  std::int64_t lb_, extent_;
  bool is_contiguous_;
};

// Returns the type that has the elements of `type` in a file in external32. Each element becomes
// the bytes that it takes there. Displacements in bytes stay unchanged.
Result<DatatypePtr> in_external32(const DatatypePtr& type);

using Numbers = std::span<const std::int64_t>;

DatatypePtr predefined(Kind kind);
Result<DatatypePtr> dup(const DatatypePtr& old);
Result<DatatypePtr> contiguous(std::int64_t count, const DatatypePtr& old, Form form = Form::kInt);
// The next functions count strides and displacements in extents of `old`.
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
// The next functions count strides and displacements in bytes.
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

// Return a Fortran type with at least this precision and range. An absent argument, MPI_UNDEFINED,
// requires nothing.
Result<DatatypePtr> f90_real(std::optional<int> precision, std::optional<int> range);
Result<DatatypePtr> f90_complex(std::optional<int> precision, std::optional<int> range);
Result<DatatypePtr> f90_integer(int range);
// Returns the predefined type of a class and size; see MPI_Type_match_size.
Result<Kind> match_size(TypeClass type_class, std::int64_t bytes);
// Returns the predefined pair of a value and an index type; absent if there is none. See
// MPI_Type_get_value_index.
std::optional<Kind> value_index(Kind value, Kind index) noexcept;

}  // namespace hocket::mpi
