// Sparse matrices between ranks: CSR, CSC and COO, in host memory.
//
//     const auto mine = hocket::csr_view(rows, columns, offsets, indices, values);  // any ranges
//     const hocket::SparseMatrix sum = hocket::all_reduce_sparse(comm, mine);
//
// Ranks may bring different numbers of entries, shapes (where they are not added), element types
// and widths of indices: what describes the matrices travels first, then their contents as one
// message. Results have the format, element type and index width of what was sent.
//
// Each call is one collective of the communicator, in its order, made of a few calls of it; what is
// refused on one rank is refused on all.
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

// What a reduction does with two matrices.
enum class SparseOp : std::uint8_t { kSum, kMatrixProduct };

// A value: a matrix in somebody's arrays, which must outlive it. Indices are int32 or int64, from
// 0.
struct SparseView {
  SparseFormat format = SparseFormat::kCsr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  ConstArrayView values = {};  // one an entry
  // CSR: where each row's entries begin, and where the last one's end: rows + 1 numbers. CSC: the
  // same of columns. COO: the row of each entry.
  ConstArrayView offsets = {};
  // CSR: the column of each entry. CSC: its row. COO: its column.
  ConstArrayView indices = {};
};

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

// What describes a matrix, and where its three arrays (values, offsets, indices) lie in a message.
struct SparseLayout {
  SparseFormat format = SparseFormat::kCsr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::array<DType, 3> dtypes{DType::kFloat64, DType::kInt32, DType::kInt32};
  std::array<std::size_t, 3> counts{};

  // Each array begins at a multiple of 16 bytes. `start(3)` is the length of the whole.
  constexpr std::size_t start(std::size_t array) const noexcept {
    std::size_t at = 0;
    for (std::size_t i = 0; i < array; ++i) {
      at += (counts[i] * size_of(dtypes[i]) + 15) / 16 * 16;
    }
    return at;
  }
  bool operator==(const SparseLayout&) const = default;
};

// A matrix with arrays of its own. A value; different ones may be used by different threads.
class SparseMatrix {
 public:
  SparseMatrix() = default;
  // Copies. Throws InvalidArgument where the arrays do not fit each other.
  explicit SparseMatrix(const SparseView& view);
  // Takes over what lies in `bytes` as `layout` says.
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

// The root's matrix on every rank; elsewhere the argument does not matter.
SparseMatrix broadcast_sparse(Communicator& comm,
                              const SparseView& mine,
                              const RootOptions& options = {});
// Every rank's matrix, in rank order; `gather_sparse` at the root alone, nothing elsewhere.
[[nodiscard("what came is in it alone")]] std::vector<SparseMatrix> all_gather_sparse(
    Communicator& comm, const SparseView& mine, const CallOptions& options = {});
std::vector<SparseMatrix> gather_sparse(Communicator& comm,
                                        const SparseView& mine,
                                        const RootOptions& options = {});
// Rank r gets matrices[r] of the root; elsewhere the argument does not matter.
SparseMatrix scatter_sparse(Communicator& comm,
                            std::span<const SparseView> matrices,
                            const RootOptions& options = {});
// matrices[r] goes to rank r; what came, in rank order.
[[nodiscard("what came is in it alone")]] std::vector<SparseMatrix> all_to_all_sparse(
    Communicator& comm, std::span<const SparseView> matrices, const CallOptions& options = {});

void send_sparse(Communicator& comm,
                 const SparseView& matrix,
                 int destination,
                 const MessageOptions& options = {});
[[nodiscard("the message has been taken, and is in it alone")]] SparseMatrix recv_sparse(
    Communicator& comm, int source, const MessageOptions& options = {});

// The sum, or the matrix product, of all ranks' matrices: the root's first, then the others' in
// rising order. Formats and element types are the root's and must be one on all ranks; sums need
// one shape, products shapes that fit. Entries of a row (of CSC: a column) come out sorted, without
// duplicates; a sum that is zero stays as an entry. At the root alone; empty elsewhere.
SparseMatrix reduce_sparse(Communicator& comm,
                           const SparseView& mine,
                           const SparseReduceOptions& options = {});
// The same on every rank, in rank order.
[[nodiscard("the result is in it alone")]] SparseMatrix all_reduce_sparse(
    Communicator& comm, const SparseView& mine, const SparseReduceOptions& options = {});
// Rank r gets the reduction of all ranks' matrices[r], in rank order.
[[nodiscard("the result is in it alone")]] SparseMatrix reduce_scatter_sparse(
    Communicator& comm,
    std::span<const SparseView> matrices,
    const SparseReduceOptions& options = {});

}  // namespace hocket
