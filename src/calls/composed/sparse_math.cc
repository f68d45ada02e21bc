// A matrix is converted to compressed rows (CSC: columns). Each row is computed in a workspace of
// the row's width. Then the matrix is put together again. COO matrices that are large but mostly
// empty are added by sorting, with memory only for the entries.
#include "calls/composed/sparse_math.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "calls/composed/sparse_layout.h"
#include "foundation/core/dispatch.h"

namespace hocket::composed {
namespace {

// The type in which elements are added up: small floats in float, bools as 0 and 1.
template <typename T>
struct AccumulatorOf {
  using Type = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
};
template <>
struct AccumulatorOf<bool> {
  using Type = std::uint8_t;
};
template <typename T>
struct AccumulatorOf<std::complex<T>> {
  using Type = std::complex<T>;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::Type;

// Integers wrap around.
template <typename T, typename A>
A add(A a, A b) {
  if constexpr (std::is_same_v<T, bool>)
    return a | b;
  else if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}
template <typename T, typename A>
A multiply(A a, A b) {
  if constexpr (std::is_same_v<T, bool>)
    return a & b;
  else if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

template <typename A>
struct Rows {
  std::size_t count = 0;
  std::size_t width = 0;
  std::vector<std::size_t> offsets{0};
  std::vector<std::size_t> indices{};
  std::vector<A> values{};
};

std::size_t index_at(ConstArrayView array, std::size_t i) {
  if (array.dtype() == DType::kInt32) {
    return static_cast<std::size_t>(static_cast<const std::int32_t*>(array.data())[i]);
  }
  return static_cast<std::size_t>(static_cast<const std::int64_t*>(array.data())[i]);
}

// Computes the offsets of each row's entries of a COO matrix, by counting.
std::vector<std::size_t> count_rows(const SparseView& view) {
  std::vector<std::size_t> offsets(view.rows + 1);
  for (std::size_t i = 0; i < view.values.count(); ++i) ++offsets[index_at(view.offsets, i) + 1];
  for (std::size_t row = 0; row < view.rows; ++row) offsets[row + 1] += offsets[row];
  return offsets;
}

template <typename T>
Rows<Accumulator<T>> load(const SparseView& view) {
  check_indices(view);
  const bool by_columns = view.format == SparseFormat::kCsc;
  Rows<Accumulator<T>> rows{.count = by_columns ? view.columns : view.rows,
                            .width = by_columns ? view.rows : view.columns};
  const auto* values = static_cast<const T*>(view.values.data());
  if (view.format == SparseFormat::kCoo) {
    rows.offsets = count_rows(view);
    rows.indices.resize(view.values.count());
    rows.values.resize(view.values.count());
    std::vector<std::size_t> next = rows.offsets;
    for (std::size_t i = 0; i < view.values.count(); ++i) {
      const std::size_t at = next[index_at(view.offsets, i)]++;
      rows.indices[at] = index_at(view.indices, i);
      rows.values[at] = static_cast<Accumulator<T>>(values[i]);
    }
    return rows;
  }
  rows.offsets.resize(rows.count + 1);
  for (std::size_t row = 0; row <= rows.count; ++row) {
    rows.offsets[row] = index_at(view.offsets, row);
  }
  const std::size_t entries = rows.offsets.back();  // the arrays may be longer
  rows.indices.resize(entries);
  rows.values.resize(entries);
  for (std::size_t i = 0; i < entries; ++i) {
    rows.indices[i] = index_at(view.indices, i);
    rows.values[i] = static_cast<Accumulator<T>>(values[i]);
  }
  return rows;
}

// One row in progress.
template <typename T, typename A = Accumulator<T>>
class Workspace {
 public:
  explicit Workspace(std::size_t width) : sums_(width), touched_(width) {}

  void add_to(std::size_t column, A value) {
    if (touched_[column] == 0) {
      touched_[column] = 1;
      columns_.push_back(column);
      sums_[column] = value;
    } else {
      sums_[column] = add<T>(sums_[column], value);
    }
  }

  // Appends the sorted row, and clears the workspace.
  void finish(Rows<A>& rows) {
    std::sort(columns_.begin(), columns_.end());
    for (const std::size_t column : columns_) {
      rows.indices.push_back(column);
      rows.values.push_back(sums_[column]);
      touched_[column] = 0;
    }
    columns_.clear();
    rows.offsets.push_back(rows.indices.size());
  }

 private:
  std::vector<A> sums_;
  std::vector<std::uint8_t> touched_;
  std::vector<std::size_t> columns_;
};

template <typename T, typename A = Accumulator<T>>
Rows<A> sum(std::span<const Rows<A>> all) {
  Rows<A> result{.count = all[0].count, .width = all[0].width};
  Workspace<T> workspace(result.width);
  for (std::size_t row = 0; row < result.count; ++row) {
    for (const Rows<A>& rows : all) {
      for (std::size_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
        workspace.add_to(rows.indices[i], rows.values[i]);
      }
    }
    workspace.finish(result);
  }
  return result;
}

template <typename T, typename A = Accumulator<T>>
Rows<A> product(const Rows<A>& a, const Rows<A>& b) {
  Rows<A> result{.count = a.count, .width = b.width};
  Workspace<T> workspace(result.width);
  for (std::size_t row = 0; row < a.count; ++row) {
    for (std::size_t i = a.offsets[row]; i < a.offsets[row + 1]; ++i) {
      const std::size_t inner = a.indices[i];
      for (std::size_t j = b.offsets[inner]; j < b.offsets[inner + 1]; ++j) {
        workspace.add_to(b.indices[j], multiply<T>(a.values[i], b.values[j]));
      }
    }
    workspace.finish(result);
  }
  return result;
}

void store_index(std::byte* to, DType dtype, std::size_t i, std::size_t value) {
  if (dtype == DType::kInt32) {
    const auto narrow = static_cast<std::int32_t>(value);
    std::memcpy(to + i * sizeof narrow, &narrow, sizeof narrow);
  } else {
    const auto wide = static_cast<std::int64_t>(value);
    std::memcpy(to + i * sizeof wide, &wide, sizeof wide);
  }
}

// Returns the layout of a result: that of the model, with wider indices if they are needed.
SparseLayout result_layout(const SparseLayout& model,
                           std::size_t entries,
                           std::size_t rows,
                           std::size_t columns) {
  SparseLayout layout = model;
  layout.rows = rows;
  layout.columns = columns;
  constexpr auto kNarrow = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  if (std::max({entries, rows, columns}) > kNarrow)
    layout.dtypes[1] = layout.dtypes[2] = DType::kInt64;
  const bool is_coo = layout.format == SparseFormat::kCoo;
  const std::size_t major = layout.format == SparseFormat::kCsc ? columns : rows;
  layout.counts = {entries, is_coo ? entries : major + 1, entries};
  return layout;
}

template <typename T, typename A = Accumulator<T>>
SparseMatrix store(const Rows<A>& rows, const SparseLayout& model) {
  const bool by_columns = model.format == SparseFormat::kCsc;
  const SparseLayout layout = result_layout(model,
                                            rows.values.size(),
                                            by_columns ? rows.width : rows.count,
                                            by_columns ? rows.count : rows.width);
  std::vector<std::byte> bytes(layout.start(3));
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    const T value = static_cast<T>(rows.values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    store_index(bytes.data() + layout.start(2), layout.dtypes[2], i, rows.indices[i]);
  }
  std::byte* offsets = bytes.data() + layout.start(1);
  if (layout.format == SparseFormat::kCoo) {
    for (std::size_t row = 0; row < rows.count; ++row) {
      for (std::size_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
        store_index(offsets, layout.dtypes[1], i, row);
      }
    }
  } else {
    for (std::size_t row = 0; row <= rows.count; ++row) {
      store_index(offsets, layout.dtypes[1], row, rows.offsets[row]);
    }
  }
  return {layout, std::move(bytes)};
}

template <typename A>
struct Entry {
  std::size_t row = 0;
  std::size_t column = 0;
  A value{};

  auto place() const noexcept { return std::pair(row, column); }
};

std::size_t entries_of(std::span<const SparseMatrix> matrices) {
  std::size_t entries = 0;
  for (const SparseMatrix& matrix : matrices) entries += matrix.view().values.count();
  return entries;
}

// Adds COO matrices by sorting their entries. The order of the terms is the same as in `sum`.
template <typename T, typename A = Accumulator<T>>
SparseMatrix sum_by_sorting(std::span<const SparseMatrix> matrices) {
  std::vector<Entry<A>> entries;
  entries.reserve(entries_of(matrices));
  for (const SparseMatrix& matrix : matrices) {
    const SparseView view = matrix.view();
    check_indices(view);
    const auto* values = static_cast<const T*>(view.values.data());
    for (std::size_t i = 0; i < view.values.count(); ++i) {
      entries.push_back({.row = index_at(view.offsets, i),
                         .column = index_at(view.indices, i),
                         .value = static_cast<A>(values[i])});
    }
  }
  std::ranges::stable_sort(entries, {}, &Entry<A>::place);
  std::size_t count = 0;  // number of merged entries
  for (const Entry<A>& entry : entries) {
    if (count != 0 && entries[count - 1].place() == entry.place()) {
      A& value = entries[count - 1].value;
      value = add<T>(value, entry.value);
    } else {
      entries[count++] = entry;
    }
  }
  const SparseLayout& model = matrices[0].layout();
  const SparseLayout layout = result_layout(model, count, model.rows, model.columns);
  std::vector<std::byte> bytes(layout.start(3));
  for (std::size_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(entries[i].value);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    store_index(bytes.data() + layout.start(1), layout.dtypes[1], i, entries[i].row);
    store_index(bytes.data() + layout.start(2), layout.dtypes[2], i, entries[i].column);
  }
  return {layout, std::move(bytes)};
}

// Returns whether sorting the entries takes less time than visiting all rows.
bool is_mostly_empty(std::span<const SparseMatrix> matrices) {
  const SparseLayout& shape = matrices[0].layout();
  const std::size_t entries = 8 * entries_of(matrices) + 1024;
  return shape.format == SparseFormat::kCoo && (shape.rows > entries || shape.columns > entries);
}

template <typename T>
SparseMatrix fold_as(std::span<const SparseMatrix> matrices, SparseOp op) {
  if (op == SparseOp::kSum && is_mostly_empty(matrices)) return sum_by_sorting<T>(matrices);
  std::vector<Rows<Accumulator<T>>> all;
  for (const SparseMatrix& matrix : matrices) all.push_back(load<T>(matrix));
  const SparseLayout& model = matrices[0].layout();
  if (op == SparseOp::kSum) return store<T>(sum<T>(std::span(std::as_const(all))), model);
  auto result = std::move(all[0]);
  for (std::size_t i = 1; i < all.size(); ++i) {
    // Columns are the rows of the transposed matrix, and (AB)' = B'A'.
    result = model.format == SparseFormat::kCsc ? product<T>(all[i], result)
                                                : product<T>(result, all[i]);
  }
  return store<T>(result, model);
}

}  // namespace

SparseMatrix fold(std::span<const SparseMatrix> matrices, SparseOp op) {
  return core::dispatch(matrices[0].dtype(),
                        [&]<typename T>() { return fold_as<T>(matrices, op); });
}

}  // namespace hocket::composed
