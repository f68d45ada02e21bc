// Calls that move and reduce sparse matrices in host memory: CSR, CSC and COO.
//
//     const auto mine = hocket::csr_view(rows, columns, offsets, indices, values);  // any ranges
//     const hocket::SparseMatrix sum = hocket::all_reduce_sparse(comm, mine);
//
// Ranks may pass matrices with different numbers of entries, shapes (unless they are added),
// element types and index widths. The descriptions of the matrices travel first, then the contents
// of each as one message. Results have the format, element type and index width of the matrix that
// was sent.
//
// Each function is one collective: it has its place in the order of the communicator's calls. It is
// made of a few smaller calls. Arguments that one rank refuses are refused on all ranks. Threads,
// deadlines and errors are those of the communicator's calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/types.h"

namespace hocket {

enum class SparseFormat : std::uint8_t { kCsr, kCsc, kCoo };

// The operation of a reduction.
enum class SparseOp : std::uint8_t { kSum, kMatrixProduct };

// A value: a matrix in arrays that must outlive it. Indices are int32 or int64 and count from 0.
struct SparseView {
  SparseFormat format = SparseFormat::kCsr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  ConstArrayView values = {};  // one for each entry
  // CSR: for each row the position of its first entry, then the number of all entries: rows + 1
  // numbers. CSC: the same for columns. COO: the row of each entry.
  ConstArrayView offsets = {};
  // CSR: the column of each entry. CSC: its row. COO: its column.
  ConstArrayView indices = {};
};

// Make a view of a matrix in one of the formats. The arrays are not copied or checked.
constexpr SparseView csr_view(std::size_t rows,
                              std::size_t columns,
                              ConstArrayView offsets,
                              ConstArrayView column_of_each,
                              ConstArrayView values) noexcept {
  return {SparseFormat::kCsr, rows, columns, values, offsets, column_of_each};
}
constexpr SparseView csc_view(std::size_t rows,
                              std::size_t columns,
                              ConstArrayView offsets,
                              ConstArrayView row_of_each,
                              ConstArrayView values) noexcept {
  return {SparseFormat::kCsc, rows, columns, values, offsets, row_of_each};
}
constexpr SparseView coo_view(std::size_t rows,
                              std::size_t columns,
                              ConstArrayView row_of_each,
                              ConstArrayView column_of_each,
                              ConstArrayView values) noexcept {
  return {SparseFormat::kCoo, rows, columns, values, row_of_each, column_of_each};
}

// The description of a matrix, and the positions of its three arrays (values, offsets, indices) in
// a message.
struct SparseLayout {
  SparseFormat format = SparseFormat::kCsr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::array<DType, 3> dtypes{DType::kFloat64, DType::kInt32, DType::kInt32};
  std::array<std::size_t, 3> counts{};

  // Returns the position of an array in bytes. Each array begins at a multiple of 16. `start(3)` is
  // the length of the message.
  constexpr std::size_t start(std::size_t array) const noexcept {
    std::size_t at = 0;
    for (std::size_t i = 0; i < array; ++i) {
      at += (counts[i] * size_of(dtypes[i]) + 15) / 16 * 16;
    }
    return at;
  }
  bool operator==(const SparseLayout&) const = default;
};

// A matrix that owns its arrays. A value; different threads may use different matrices.
class SparseMatrix {
 public:
  SparseMatrix() = default;
  // Copies a matrix.
  // @throws InvalidArgument if the arrays do not fit each other.
  explicit SparseMatrix(const SparseView& view);
  // Takes ownership of arrays that lie in `bytes` as `layout` says.
  SparseMatrix(const SparseLayout& layout, std::vector<std::byte> bytes);

  SparseFormat format() const noexcept { return layout_.format; }
  std::size_t rows() const noexcept { return layout_.rows; }
  std::size_t columns() const noexcept { return layout_.columns; }
  std::size_t entries() const noexcept { return layout_.counts[0]; }
  DType dtype() const noexcept { return layout_.dtypes[0]; }
  const SparseLayout& layout() const noexcept { return layout_; }

  SparseView view() const noexcept;
  operator SparseView() const noexcept { return view(); }

 private:
  ConstArrayView array(std::size_t which) const noexcept;

  SparseLayout layout_;
  std::vector<std::byte> bytes_;
};

struct SparseReduceOptions {
  SparseOp op = SparseOp::kSum;
  int root = 0;
  std::optional<Duration> deadline = {};
};

// Sends the root's matrix to all ranks. Matrices of other ranks are ignored.
SparseMatrix broadcast_sparse(Communicator& comm,
                              const SparseView& mine,
                              const RootOptions& options = {});
// Return every rank's matrix, in rank order. gather_sparse returns them at the root, and nothing
// elsewhere.
[[nodiscard("what came is in it alone")]] std::vector<SparseMatrix> all_gather_sparse(
    Communicator& comm, const SparseView& mine, const CallOptions& options = {});
std::vector<SparseMatrix> gather_sparse(Communicator& comm,
                                        const SparseView& mine,
                                        const RootOptions& options = {});
// Sends matrices[r] of the root to rank r. Matrices of other ranks are ignored.
SparseMatrix scatter_sparse(Communicator& comm,
                            std::span<const SparseView> matrices,
                            const RootOptions& options = {});
// Sends matrices[r] to rank r. Returns the matrices that arrived, in rank order.
[[nodiscard("what came is in it alone")]] std::vector<SparseMatrix> all_to_all_sparse(
    Communicator& comm, std::span<const SparseView> matrices, const CallOptions& options = {});

// Send a matrix to one rank, and receive one. See Communicator::send for the order of messages.
void send_sparse(Communicator& comm,
                 const SparseView& matrix,
                 int destination,
                 const MessageOptions& options = {});
[[nodiscard("the message has been taken, and is in it alone")]] SparseMatrix recv_sparse(
    Communicator& comm, int source, const MessageOptions& options = {});

// Computes the sum or matrix product of all ranks' matrices: the root's first, then the others' in
// ascending order. All ranks must have the same format and element types. Sums need equal shapes,
// and products shapes that fit. Entries of a row (CSC: a column) are sorted and without duplicates.
// A sum of zero stays as an entry. The result is at the root; other ranks get an empty matrix.
SparseMatrix reduce_sparse(Communicator& comm,
                           const SparseView& mine,
                           const SparseReduceOptions& options = {});
// Does the same on every rank, in rank order.
[[nodiscard("the result is in it alone")]] SparseMatrix all_reduce_sparse(
    Communicator& comm, const SparseView& mine, const SparseReduceOptions& options = {});
// Gives rank r the reduction of all ranks' matrices[r], in rank order.
[[nodiscard("the result is in it alone")]] SparseMatrix reduce_scatter_sparse(
    Communicator& comm,
    std::span<const SparseView> matrices,
    const SparseReduceOptions& options = {});

}  // namespace hocket
