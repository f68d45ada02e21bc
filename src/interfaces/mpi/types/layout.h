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
// So a type takes memory by its arguments, never by the number of its elements. The order of the
// walk is the order of the type map, which is that of the packed bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interfaces/mpi/types/kinds.h"

namespace hocket::mpi {

// Which way bytes go: from a user's buffer into packed bytes, or back.
enum class Way { kPack, kUnpack };

// A place in a user's buffer. It is an integer, as MPI_BOTTOM is null and displacements from it are
// addresses.
using Address = std::uintptr_t;

struct ByteRun {
  std::int64_t offset = 0;
  std::int64_t length = 0;
  std::int64_t start = 0;  // its place among the packed bytes
};

struct Part;

// A value; copies share what is long. Immutable when it is shared between threads.
struct Layout {
  enum class Shape : std::uint8_t { kEmpty, kRun, kLoop, kList, kPieces, kSequence };

  Shape shape = Shape::kEmpty;
  // The kind of all bytes below, if they have one; pairs count as their parts.
  Kind kind = Kind::kByte;
  bool is_mixed = false;                    // there are several kinds below; `kind` says nothing
  std::int64_t offset = 0;                  // of all that is below, from where the layout is put
  std::int64_t size = 0;                    // packed bytes
  std::int64_t elements = 0;                // basic elements
  std::int64_t count = 0;                   // of a loop
  std::int64_t stride = 0;                  // of a loop, in bytes
  std::shared_ptr<const Layout> body = {};  // of a loop or a list
  std::shared_ptr<const std::vector<std::int64_t>> list = {};  // offsets
  std::shared_ptr<const std::vector<ByteRun>> pieces = {};     // runs of one kind
  std::shared_ptr<const std::vector<Part>> parts = {};         // of a sequence
};

struct Part {
  Layout layout = {};
  std::int64_t start = 0;  // its place among the packed bytes
};

// Bytes of `elements` elements of a kind that is no pair.
Layout run_of(Kind kind, std::int64_t elements);

Layout moved(Layout layout, std::int64_t offset);

// `count` layouts, each `stride` bytes after the one before. The caller has seen that sizes and
// places fit into 64 bits.
Layout repeated(const Layout& layout, std::int64_t count, std::int64_t stride);

// Puts layouts one after the other. A value.
class Join {
 public:
  // `by_kind`: bytes of different kinds are kept apart.
  explicit Join(bool by_kind) : by_kind_(by_kind) {}

  void add(const Layout& layout);
  // The same for a run, whose bytes begin at `offset`.
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
  std::vector<ByteRun> pieces_;  // as long as there are runs of one kind alone
  std::vector<Part> parts_;
};

}  // namespace hocket::mpi
