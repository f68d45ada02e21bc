// A type map as the standard defines it: the places of the bytes, the bounds, the alignment.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "interfaces/mpi/types/kinds.h"
#include "interfaces/mpi/types/layout.h"
#include "interfaces/mpi/types/result.h"

namespace hocket::mpi {

// The bounds of a type, in bytes from its origin.
struct Bounds {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
};

// A type map. A value; copies share long parts.
class TypeMap {
 public:
  TypeMap() = default;  // with nothing in it
  static TypeMap of(Kind kind);

  std::int64_t size() const noexcept { return bytes_.size; }
  std::int64_t lb() const noexcept { return bounds().lower; }
  std::int64_t extent() const noexcept { return bounds().upper - bounds().lower; }
  std::int64_t true_lb() const noexcept { return data_ ? data_->lower : 0; }
  std::int64_t true_extent() const noexcept { return data_ ? data_->upper - data_->lower : 0; }
  // Returns the kind of all elements, if they have one kind. A pair counts as one kind here.
  std::optional<Kind> element_kind() const noexcept { return kind_; }

  // Return the layout without regard to kinds, and the layout whose runs are separated by kind.
  const Layout& bytes() const noexcept { return bytes_; }
  const Layout& elements() const noexcept { return is_mixed_ ? *by_kind_ : bytes_; }

  // Returns the same map with other bounds. Types that are made of it keep these bounds.
  Result<TypeMap> bounded(std::int64_t lb, std::int64_t extent) const;
  // Returns `count` copies of the map, `stride` bytes apart.
  Result<TypeMap> repeated(std::int64_t count, std::int64_t stride) const;
  Result<TypeMap> moved(std::int64_t offset) const;

 private:
  friend class TypeMapJoin;

  Bounds bounds() const noexcept;

  Layout bytes_ = {};
  std::shared_ptr<const Layout> by_kind_ = {};  // only if it is mixed
  bool is_mixed_ = false;
  std::optional<Kind> kind_ = {};
  std::optional<Bounds> data_ = {};    // of the bytes
  std::optional<Bounds> marked_ = {};  // set by `bounded`, here or in a part
  std::int64_t alignment_ = 1;
};

// Builds the sequence of several type maps. A value.
class TypeMapJoin {
 public:
  // Puts `count` copies of `map`, an extent apart, at `offset`.
  std::optional<Refusal> add(const TypeMap& map, std::int64_t count, std::int64_t offset);
  Result<TypeMap> take();

 private:
  void add_layouts(const TypeMap& map, std::int64_t count, std::int64_t offset);

  TypeMap made_ = {};
  std::int64_t size_ = 0;
  Join bytes_{false};
  Join by_kind_{true};
};

}  // namespace hocket::mpi
