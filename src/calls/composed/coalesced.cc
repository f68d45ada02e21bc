// Many arrays in one call. Small arrays of each dtype are packed and travel together. Large arrays
// travel separately, because packing does not help them. All ranks pass the same list, so they make
// the same division.
//
// Everything is checked, allocated and packed before the first part. If there are several parts, a
// barrier follows. After it, no rank can refuse a part.
#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "calls/world/communicator_impl.h"
#include "engine/made_of_calls.h"
#include "foundation/base/hash.h"
#include "hocket/error.h"

namespace hocket {

using call::Request;
using engine::Kind;
using world::CommunicatorImpl;

namespace {

constexpr std::size_t kPackBelow = 128 * 1024;  // bytes; smaller arrays are packed

std::byte* at(ArrayView view) { return static_cast<std::byte*>(view.data()); }

// Returns a hash of the list. All ranks must pass the same list, not only the same total.
std::uint64_t hash_list(std::span<const ArrayView> arrays) {
  std::uint64_t hash = base::kHashSeed;
  for (const ArrayView& array : arrays) {
    const bool in_fortran_order = array.order() == MemoryOrder::kFortran;
    hash = base::mix(base::mix(hash, array.count()),
                     static_cast<std::uint64_t>(array.dtype()) << 1 | (in_fortran_order ? 1 : 0));
  }
  return hash | 1;
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

// The parts of a call on a list.
class Calls {
 public:
  Calls(world::CommunicatorImpl& impl,
        const call::Request& common,
        std::span<const ArrayView> arrays)
      : impl_(impl), common_(common) {
    common_.digest = hash_list(arrays);
  }

  // Divides the arrays of the list. `small` makes one part from the indices of all small arrays of
  // one dtype. `large` makes one part from another array.
  template <typename Small, typename Large>
  void sort_out(std::span<const ArrayView> arrays, const Small& small, const Large& large) {
    for (int d = 0; d < kDTypeCount; ++d) {
      std::vector<std::size_t> together;
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (static_cast<int>(arrays[i].dtype()) != d) continue;
        // The host cannot pack arrays in a GPU's memory.
        if (arrays[i].bytes() < kPackBelow && arrays[i].memory() == MemoryKind::kHost) {
          together.push_back(i);
        } else {
          large(add(), i);
        }
      }
      if (together.empty()) continue;
      Part& part = add();
      part.small = std::move(together);
      small(part);
    }
  }

  // One part of the call.
  struct Part {
    call::Request request;
    std::vector<std::size_t> small;  // packed arrays; empty: one large array
    std::vector<std::byte> in, out;  // packed; a part in place has only `out`
  };

  // Checks all parts. Called after they were added, outside any call.
  void check() const {
    for (const Part& part : parts_) {
      call::CallStorage storage;
      if (!part.request.is_device()) call::check(part.request, impl_.place(), storage);
    }
  }

  // Makes the parts. `unpack` follows each part of small arrays.
  template <typename Unpack>
  void run(const Unpack& unpack) {
    // Calls on GPUs run ahead of other ranks' calls, so nothing may delay them. A rank with an
    // empty list meets too, because other ranks' lists may not be empty.
    if (parts_.size() != 1 &&
        std::ranges::none_of(parts_, &call::Request::is_device, &Part::request)) {
      const call::Request first = parts_.empty() ? common_ : parts_.front().request;
      impl_.run_as({.kind = Kind::kBarrier,
                    .dtype = first.out.dtype(),
                    .op = common_.op,
                    .root = common_.root,
                    .count = first.out.count(),
                    .digest = common_.digest},
                   {.kind = Kind::kBarrier, .deadline = common_.deadline});
    }
    std::optional<call::Core::Commitment> bound;
    if (parts_.size() > 1) bound.emplace(impl_);
    for (Part& part : parts_) {
      impl_.run(part.request);
      if (!part.small.empty()) unpack(part);
    }
  }

 private:
  Part& add() {
    return parts_.emplace_back(Part{.request = common_, .small = {}, .in = {}, .out = {}});
  }

  world::CommunicatorImpl& impl_;
  call::Request common_;
  std::vector<Part> parts_;
};

using Part = Calls::Part;

void check_pairs(std::span<const ConstArrayView> in,
                 std::span<const ArrayView> out,
                 int size,
                 bool gathers) {
  if (in.size() != out.size()) {
    throw InvalidArgument("in has " + std::to_string(in.size()) + " arrays and out has " +
                          std::to_string(out.size()));
  }
  const auto n = static_cast<std::size_t>(size);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t small = gathers ? in[i].count() : out[i].count();
    const std::size_t large = gathers ? out[i].count() : in[i].count();
    if (small * n != large || in[i].dtype() != out[i].dtype()) {
      throw InvalidArgument(
          "pair " + std::to_string(i) + ": in has " + std::to_string(in[i].count()) +
          " elements of " + std::string(name_of(in[i].dtype())) + ", out " +
          std::to_string(out[i].count()) + " of " + std::string(name_of(out[i].dtype())) +
          ", for " + std::to_string(n) + " ranks");
    }
  }
}

// The bytes of one array of a list.
struct ListedArray {
  const std::byte* first;
  const std::byte* last;  // one beyond the end
  std::size_t index;
  bool is_out;
};

std::string text_of(const ListedArray& piece, bool has_in) {
  const char* list = !has_in ? "arrays" : piece.is_out ? "out" : "in";
  return std::string(list) + "[" + std::to_string(piece.index) + "]";
}

// Throws for an invalid array, because packing accesses arrays before any call has checked them.
void require_arrays(std::span<const ConstArrayView> in, std::span<const ArrayView> out) {
  const auto require = [&](ConstArrayView array, std::size_t index, bool is_out) {
    if (call::fault_of(array, "").empty()) return;
    const ListedArray piece{.first = nullptr, .last = nullptr, .index = index, .is_out = is_out};
    throw InvalidArgument(call::fault_of(array, text_of(piece, !in.empty())));
  };
  for (std::size_t i = 0; i < in.size(); ++i) require(in[i], i, false);
  for (std::size_t i = 0; i < out.size(); ++i) require(out[i], i, true);
}

// Throws if an array overlaps another array's output, because the order of writes depends on the
// sizes. The two arrays of one pair are checked by the call that carries the pair.
void require_apart(std::span<const ConstArrayView> in, std::span<const ArrayView> out) {
  std::vector<ListedArray> pieces;
  pieces.reserve(in.size() + out.size());
  const auto add = [&](ConstArrayView array, std::size_t index, bool is_out) {
    const auto* first = static_cast<const std::byte*>(array.data());
    if (array.bytes() != 0) pieces.push_back({first, first + array.bytes(), index, is_out});
  };
  for (std::size_t i = 0; i < out.size(); ++i) add(out[i], i, true);
  for (std::size_t i = 0; i < in.size(); ++i) add(in[i], i, false);
  std::ranges::sort(pieces, std::less<>(), &ListedArray::first);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t k = i + 1; k < pieces.size() && pieces[k].first < pieces[i].last; ++k) {
      const ListedArray &a = pieces[i], &b = pieces[k];
      if ((!a.is_out && !b.is_out) || (a.is_out != b.is_out && a.index == b.index)) continue;
      const bool has_in = !in.empty();
      throw InvalidArgument(text_of(a, has_in) + " and " + text_of(b, has_in) +
                            " overlap; give each array once, and arrays apart");
    }
  }
}

// Packs arrays, makes an in-place call on the packed data, and unpacks.
void packed_in_place(world::CommunicatorImpl& impl,
                     std::span<const ArrayView> arrays,
                     const call::Request& request,
                     bool may_overlap) {
  Calls calls(impl, request, arrays);
  const bool reduces = request.kind == Kind::kAllReduce;
  const call::Core::Whole whole(impl,
                                reduces ? Kind::kAllReduceCoalesced : Kind::kBroadcastCoalesced);
  impl.before_call(Kind::kNone, [&] {
    require_arrays({}, arrays);
    if (!may_overlap) require_apart({}, arrays);
    calls.sort_out(
        arrays,
        [&](Part& part) {
          std::size_t total = 0;
          for (const std::size_t i : part.small) total += arrays[i].count();
          const DType dtype = arrays[part.small.front()].dtype();
          part.out.resize(total * size_of(dtype));
          std::byte* to = part.out.data();
          for (const std::size_t i : part.small) {
            copy(to, arrays[i].data(), arrays[i].bytes());
            to += arrays[i].bytes();
          }
          part.request.out = ArrayView(part.out.data(), total, dtype);
        },
        [&](Part& part, std::size_t i) { part.request.out = arrays[i]; });
    calls.check();
  });
  calls.run([&](const Part& part) {
    const std::byte* from = part.out.data();
    for (const std::size_t i : part.small) {
      copy(arrays[i].data(), from, arrays[i].bytes());
      from += arrays[i].bytes();
    }
  });
}

}  // namespace

void Communicator::all_reduce_coalesced(std::span<const ArrayView> arrays, const ReduceOptions& o) {
  packed_in_place(*impl_,
                  arrays,
                  {.kind = Kind::kAllReduce,
                   .in_place = true,
                   .op = o.op,
                   .deadline = o.deadline,
                   .stream = o.stream},
                  false);
}

void Communicator::broadcast_coalesced(std::span<const ArrayView> arrays, const RootOptions& o) {
  packed_in_place(*impl_,
                  arrays,
                  {.kind = Kind::kBroadcast,
                   .in_place = true,
                   .root = o.root,
                   .deadline = o.deadline,
                   .stream = o.stream},
                  true);
}

// Packed data has the order [rank][array]. The arrays themselves have the order [array][rank].
void Communicator::all_gather_coalesced(std::span<const ConstArrayView> in,
                                        std::span<const ArrayView> out,
                                        const CallOptions& o) {
  impl_->require_usable();
  const auto n = static_cast<std::size_t>(size());
  Calls calls(*impl_, {.kind = Kind::kAllGather, .deadline = o.deadline, .stream = o.stream}, out);
  const call::Core::Whole whole(*impl_, Kind::kAllGatherCoalesced);
  impl_->before_call(Kind::kNone, [&] {
    require_arrays(in, out);
    check_pairs(in, out, size(), true);
    require_apart(in, out);
    calls.sort_out(
        out,
        [&](Part& part) {
          for (const std::size_t i : part.small) {
            const auto* bytes = static_cast<const std::byte*>(in[i].data());
            part.in.insert(part.in.end(), bytes, bytes + in[i].bytes());
          }
          part.out.resize(part.in.size() * n);
          part.request.in = {part.in.data(), part.in.size(), DType::kUInt8};
          part.request.out = {part.out.data(), part.out.size(), DType::kUInt8};
        },
        [&](Part& part, std::size_t i) {
          part.request.in = in[i];
          part.request.out = out[i];
        });
    calls.check();
  });
  calls.run([&](const Part& part) {
    const std::byte* from = part.out.data();
    for (std::size_t r = 0; r < n; ++r) {
      for (const std::size_t i : part.small) {
        copy(at(out[i]) + r * in[i].bytes(), from, in[i].bytes());
        from += in[i].bytes();
      }
    }
  });
}

void Communicator::reduce_scatter_coalesced(std::span<const ConstArrayView> in,
                                            std::span<const ArrayView> out,
                                            const ReduceOptions& o) {
  impl_->require_usable();
  const auto n = static_cast<std::size_t>(size());
  Calls calls(
      *impl_,
      {.kind = Kind::kReduceScatter, .op = o.op, .deadline = o.deadline, .stream = o.stream},
      out);
  const call::Core::Whole whole(*impl_, Kind::kReduceScatterCoalesced);
  impl_->before_call(Kind::kNone, [&] {
    require_arrays(in, out);
    check_pairs(in, out, size(), false);
    require_apart(in, out);
    calls.sort_out(
        out,
        [&](Part& part) {
          const DType dtype = out[part.small.front()].dtype();
          std::size_t share = 0;
          for (const std::size_t i : part.small) share += out[i].count();
          part.in.resize(share * n * size_of(dtype));
          part.out.resize(share * size_of(dtype));
          std::byte* to = part.in.data();
          for (std::size_t r = 0; r < n; ++r) {
            for (const std::size_t i : part.small) {
              const auto* bytes = static_cast<const std::byte*>(in[i].data());
              copy(to, bytes + r * out[i].bytes(), out[i].bytes());
              to += out[i].bytes();
            }
          }
          part.request.in = {part.in.data(), share * n, dtype};
          part.request.out = {part.out.data(), share, dtype};
        },
        [&](Part& part, std::size_t i) {
          part.request.in = in[i];
          part.request.out = out[i];
        });
    calls.check();
  });
  calls.run([&](const Part& part) {
    const std::byte* from = part.out.data();
    for (const std::size_t i : part.small) {
      copy(out[i].data(), from, out[i].bytes());
      from += out[i].bytes();
    }
  });
}

}  // namespace hocket
