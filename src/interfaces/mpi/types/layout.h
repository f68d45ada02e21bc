// The positions of a datatype's bytes, as loops.
//
// The standard defines a type by its type map, a list of (basic type, displacement). A layout is
// that list with neighbours merged into runs of bytes, and repetitions kept as loops:
//
//     vector(3, 2, 4, double):   loop of 3, stride 32, of  run of 16 bytes
//     rows of a 2-d subarray:    loop of rows, stride of a row, of  run of a row's bytes
//     indexed, equal lengths:    list of offsets, of  run
//     indexed, other lengths:    pieces, each an offset and a length
//     struct of loops:           sequence of layouts
//
// So a layout's size depends on the arguments of the type, never on the number of elements. A walk
// follows the order of the type map, which is the order of the packed bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interfaces/mpi/types/kinds.h"

namespace hocket::mpi {

// The direction of a copy: from a user's buffer into packed bytes, or back.
enum class Way { kPack, kUnpack };

// An address in a user's buffer. It is an integer, because with MPI_BOTTOM (null) displacements are
// absolute addresses.
using Address = std::uintptr_t;

struct ByteRun {
  std::int64_t offset = 0;
  std::int64_t length = 0;
  std::int64_t start = 0;  // its position among the packed bytes
};

struct Part;

// A value; copies share long parts. It must not change once threads share it.
struct Layout {
  enum class Shape : std::uint8_t { kEmpty, kRun, kLoop, kList, kPieces, kSequence };

  Shape shape = Shape::kEmpty;
  // The kind of all bytes in this layout, if they have one; pairs count as their parts.
  Kind kind = Kind::kByte;
  bool is_mixed = false;      // there are several kinds in this layout; `kind` says nothing
  std::int64_t offset = 0;    // of the whole layout, from the address at which it is used
  std::int64_t size = 0;      // packed bytes
  std::int64_t elements = 0;  // basic elements
  std::int64_t count = 0;     // of a loop
  std::int64_t stride = 0;    // of a loop, in bytes
  std::shared_ptr<const Layout> body = {};                     // of a loop or a list
  std::shared_ptr<const std::vector<std::int64_t>> list = {};  // offsets
  std::shared_ptr<const std::vector<ByteRun>> pieces = {};     // runs of one kind
  std::shared_ptr<const std::vector<Part>> parts = {};         // of a sequence
};

struct Part {
  Layout layout = {};
  std::int64_t start = 0;  // its position among the packed bytes
};

// A run of `elements` elements of a kind other than a pair.
Layout run_of(Kind kind, std::int64_t elements);

Layout moved(Layout layout, std::int64_t offset);

// Repeats a layout `count` times, `stride` bytes apart. The caller has checked that sizes and
// offsets fit into 64 bits.
Layout repeated(const Layout& layout, std::int64_t count, std::int64_t stride);

// Builds the sequence of several layouts. A value.
class Join {
 public:
  // With `by_kind`, bytes of different kinds stay in separate runs.
  explicit Join(bool by_kind) : by_kind_(by_kind) {}

  void add(const Layout& layout);
  // Adds a run of `elements` elements, which begins at `offset`.
  void add_run(Kind kind, std::int64_t offset, std::int64_t elements);
  Layout take();

 private:
  bool can_be_piece(Kind kind) const;
  void add_piece(std::int64_t offset, std::int64_t length);
  void add_part(const Layout& layout);
  void pieces_become_parts();
  void count_in(Kind kind, bool is_mixed, std::int64_t size, std::int64_t elements);
  Layout of_pieces();
  Layout of_parts();

  bool by_kind_;
  bool is_mixed_ = false;
  bool is_empty_ = true;
  Kind kind_ = Kind::kByte;
  std::int64_t size_ = 0;
  std::int64_t elements_ = 0;
  std::vector<ByteRun> pieces_;  // used while all parts are runs of one kind
  std::vector<Part> parts_;
};

}  // namespace hocket::mpi
