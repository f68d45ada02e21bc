#include "calls/composed/sparse_layout.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <utility>

#include "calls/call/request.h"
#include "foundation/base/enumerator.h"
#include "hocket/error.h"

namespace hocket {

using composed::layout_of;

SparseMatrix::SparseMatrix(const SparseView& view)
    : layout_(layout_of(view, "view")), bytes_(layout_.start(3)) {
  composed::pack(view, layout_, bytes_.data());
}

SparseMatrix::SparseMatrix(const SparseLayout& layout, std::vector<std::byte> bytes)
    : layout_(layout), bytes_(std::move(bytes)) {
  base::require_enumerator(
      layout.format, SparseFormat::kCoo, "format of the layout", "SparseFormat");
  for (const DType dtype : layout.dtypes) {
    if (size_of(dtype) == 0) {
      throw InvalidArgument("a dtype of the layout is none of hocket::DType");
    }
  }
  if (bytes_.size() < layout_.start(3)) {
    throw InvalidArgument(fmt::format(
        "bytes has {} bytes, expected the layout's {}", bytes_.size(), layout_.start(3)));
  }
}

ConstArrayView SparseMatrix::array(std::size_t which) const noexcept {
  return {bytes_.data() + layout_.start(which), layout_.counts[which], layout_.dtypes[which]};
}

SparseView SparseMatrix::view() const noexcept {
  return {layout_.format, layout_.rows, layout_.columns, array(0), array(1), array(2)};
}

namespace composed {
namespace {

// Limit of rows, columns and entries, so that sums of their bytes do not overflow.
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 64;

bool is_index(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// Returns the number of offsets of a matrix.
std::size_t offset_count(SparseFormat format,
                         std::size_t rows,
                         std::size_t columns,
                         std::size_t entries) {
  switch (format) {
    case SparseFormat::kCsr:
      return rows + 1;
    case SparseFormat::kCsc:
      return columns + 1;
    case SparseFormat::kCoo:
      return entries;
  }
  return 0;
}

template <typename Function>
void for_each_index(ConstArrayView array, Function&& function) {
  if (array.dtype() == DType::kInt32) {
    const auto* data = static_cast<const std::int32_t*>(array.data());
    for (std::size_t i = 0; i < array.count(); ++i) function(std::int64_t{data[i]});
  } else {
    const auto* data = static_cast<const std::int64_t*>(array.data());
    for (std::size_t i = 0; i < array.count(); ++i) function(data[i]);
  }
}

void check_range(ConstArrayView array, std::size_t limit, const char* name) {
  for_each_index(array, [&](std::int64_t index) {
    if (index < 0 || static_cast<std::uint64_t>(index) >= limit) {
      throw InvalidArgument(fmt::format(
          "{} holds {}, expected 0 to {} by the matrix's shape", name, index, limit - 1));
    }
  });
}

}  // namespace

SparseLayout layout_of(const SparseView& view, const char* name) {
  base::require_enumerator(
      view.format, SparseFormat::kCoo, fmt::format("format of {}", name), "SparseFormat");
  for (const ConstArrayView& array : {view.values, view.offsets, view.indices}) {
    if (array.memory() == MemoryKind::kCuda) {
      throw InvalidArgument(fmt::format(
          "{} is in a GPU's memory, expected host memory; copy it, or use Python's hocket.sparse",
          name));
    }
  }
  if (!is_index(view.offsets.dtype()) || !is_index(view.indices.dtype())) {
    throw InvalidArgument(fmt::format("{} has indices of {} and {}, expected int32 or int64",
                                      name,
                                      name_of(view.offsets.dtype()),
                                      name_of(view.indices.dtype())));
  }
  const std::size_t offsets =
      offset_count(view.format, view.rows, view.columns, view.values.count());
  if (view.indices.count() != view.values.count() || view.offsets.count() != offsets) {
    throw InvalidArgument(
        fmt::format("{} of {} x {} has {} values, {} indices and {} offsets, expected as many "
                    "indices as values, and {} offsets",
                    name,
                    view.rows,
                    view.columns,
                    view.values.count(),
                    view.indices.count(),
                    view.offsets.count(),
                    offsets));
  }
  for (const std::size_t length : {view.rows, view.columns, view.values.count()}) {
    if (length < static_cast<std::uint64_t>(kMost)) continue;
    throw InvalidArgument(fmt::format("{} of {} x {} with {} entries is more than can be counted",
                                      name,
                                      view.rows,
                                      view.columns,
                                      view.values.count()));
  }
  call::require_array(view.values, fmt::format("values of {}", name));
  call::require_array(view.offsets, fmt::format("offsets of {}", name));
  call::require_array(view.indices, fmt::format("indices of {}", name));
  return {view.format,
          view.rows,
          view.columns,
          {view.values.dtype(), view.offsets.dtype(), view.indices.dtype()},
          {view.values.count(), view.offsets.count(), view.indices.count()}};
}

void check_indices(const SparseView& view) {
  const bool by_columns = view.format == SparseFormat::kCsc;
  check_range(view.indices, by_columns ? view.rows : view.columns, "indices");
  if (view.format == SparseFormat::kCoo) {
    check_range(view.offsets, view.rows, "offsets (the rows)");
    return;
  }
  std::int64_t last = 0;
  bool is_first = true;
  for_each_index(view.offsets, [&](std::int64_t offset) {
    if (offset < last || static_cast<std::uint64_t>(offset) > view.values.count()) {
      throw InvalidArgument(
          fmt::format("offsets holds {} after {}, expected rising numbers to the {} entries",
                      offset,
                      last,
                      view.values.count()));
    }
    if (std::exchange(is_first, false) && offset != 0) {
      throw InvalidArgument(fmt::format("offsets begins with {}, expected 0", offset));
    }
    last = offset;
  });
}

void encode(const SparseLayout& layout, std::int64_t* words) {
  words[0] = static_cast<std::int64_t>(layout.format);
  words[1] = 0;  // Python uses it to distinguish arrays from matrices
  words[2] = static_cast<std::int64_t>(layout.rows);
  words[3] = static_cast<std::int64_t>(layout.columns);
  for (std::size_t i = 0; i < 3; ++i) {
    words[4 + i] = static_cast<std::int64_t>(layout.dtypes[i]);
    words[7 + i] = static_cast<std::int64_t>(layout.counts[i]);
  }
}

SparseLayout decode(const std::int64_t* words) {
  bool is_sane = words[0] >= 0 && words[0] <= static_cast<std::int64_t>(SparseFormat::kCoo);
  for (const std::size_t i : {2, 3, 7, 8, 9})
    is_sane = is_sane && words[i] >= 0 && words[i] < kMost;
  for (const std::size_t i : {4, 5, 6}) {
    is_sane = is_sane && words[i] >= 0 && words[i] < kDTypeCount;
  }
  const auto require = [](bool is_matrix) {
    if (is_matrix) return;
    throw InvalidArgument("a rank sent what describes no sparse matrix; make the same call there");
  };
  require(is_sane);
  SparseLayout layout{.format = static_cast<SparseFormat>(words[0]),
                      .rows = static_cast<std::size_t>(words[2]),
                      .columns = static_cast<std::size_t>(words[3])};
  for (std::size_t i = 0; i < 3; ++i) {
    layout.dtypes[i] = static_cast<DType>(words[4 + i]);
    layout.counts[i] = static_cast<std::size_t>(words[7 + i]);
  }
  const auto [entries, offsets, indices] = layout.counts;
  require(is_index(layout.dtypes[1]) && is_index(layout.dtypes[2]) && indices == entries &&
          offsets == offset_count(layout.format, layout.rows, layout.columns, entries));
  return layout;
}

void pack(const SparseView& view, const SparseLayout& layout, std::byte* to) {
  const std::array arrays{view.values, view.offsets, view.indices};
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].bytes() != 0) {
      std::memcpy(to + layout.start(i), arrays[i].data(), arrays[i].bytes());
    }
  }
}

}  // namespace composed
}  // namespace hocket
