// Many arrays in one call: the small ones of each dtype travel together, packed; large ones gain
// nothing by that and go by themselves. All ranks bring the same list, so all decide alike.
#include <algorithm>
#include <cstring>
#include <functional>

#include "base/hash.h"
#include "comm/communicator_impl.h"

namespace hocket {

using comm::CommunicatorImpl;
using comm::Request;
using engine::Kind;

namespace {

constexpr std::size_t kPackBelow = 128 * 1024;  // bytes of an array

std::byte* at(ArrayView view) { return static_cast<std::byte*>(view.data()); }

// A hash of the list, which all ranks must bring alike, not only its sum.
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

// Runs `together` once for each dtype with the indices of its small arrays, `alone` for others.
void sort_out(std::span<const ArrayView> arrays,
              const std::function<void(std::span<const std::size_t>)>& together,
              const std::function<void(std::size_t)>& alone) {
  for (int d = 0; d < kDTypeCount; ++d) {
    std::vector<std::size_t> small;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (static_cast<int>(arrays[i].dtype()) != d) continue;
      // What lies in a GPU's memory cannot be packed by the host.
      if (arrays[i].bytes() < kPackBelow && arrays[i].memory() == MemoryKind::kHost) {
        small.push_back(i);
      } else {
        alone(i);
      }
    }
    if (!small.empty()) together(small);
  }
}

// Packs arrays end to end, runs an in-place call on the whole, and unpacks.
void packed_in_place(CommunicatorImpl& impl, std::span<const ArrayView> arrays, Request request) {
  request.extra = hash_list(arrays);
  sort_out(
      arrays,
      [&](std::span<const std::size_t> small) {
        std::size_t total = 0;
        for (const std::size_t i : small) total += arrays[i].count();
        const DType dtype = arrays[small.front()].dtype();
        std::vector<std::byte> packed(total * size_of(dtype));
        std::byte* to = packed.data();
        for (const std::size_t i : small) {
          copy(to, arrays[i].data(), arrays[i].bytes());
          to += arrays[i].bytes();
        }
        request.out = ArrayView(packed.data(), total, dtype);
        impl.run(request);
        const std::byte* from = packed.data();
        for (const std::size_t i : small) {
          copy(arrays[i].data(), from, arrays[i].bytes());
          from += arrays[i].bytes();
        }
      },
      [&](std::size_t i) {
        request.out = arrays[i];
        impl.run(request);
      });
}

void check_pairs(CommunicatorImpl& impl,
                 Kind kind,
                 std::span<const ConstArrayView> in,
                 std::span<const ArrayView> out,
                 bool gathers) {
  if (in.size() != out.size()) {
    impl.refuse_call(kind,
                     "in has " + std::to_string(in.size()) + " arrays and out has " +
                         std::to_string(out.size()));
  }
  const auto n = static_cast<std::size_t>(impl.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t small = gathers ? in[i].count() : out[i].count();
    const std::size_t large = gathers ? out[i].count() : in[i].count();
    if (small * n != large || in[i].dtype() != out[i].dtype()) {
      impl.refuse_call(kind,
                       "pair " + std::to_string(i) + ": in has " + std::to_string(in[i].count()) +
                           " elements of " + std::string(name_of(in[i].dtype())) + ", out " +
                           std::to_string(out[i].count()) + " of " +
                           std::string(name_of(out[i].dtype())) + ", for " + std::to_string(n) +
                           " ranks");
    }
  }
}

// One of the arrays of a list, as the bytes that it takes.
struct Piece {
  const std::byte* first;
  const std::byte* last;  // one beyond
  std::size_t index;
  bool is_out;
};

std::string text_of(const Piece& piece, bool has_in) {
  const char* list = !has_in ? "arrays" : piece.is_out ? "out" : "in";
  return std::string(list) + "[" + std::to_string(piece.index) + "]";
}

// Packing reads and writes arrays before any call has looked at them.
void require_arrays(CommunicatorImpl& impl,
                    Kind kind,
                    std::span<const ConstArrayView> in,
                    std::span<const ArrayView> out) {
  const auto require = [&](ConstArrayView array, std::size_t index, bool is_out) {
    if (comm::fault_of(array, "").empty()) return;
    const Piece piece{.first = nullptr, .last = nullptr, .index = index, .is_out = is_out};
    impl.refuse_call(kind, comm::fault_of(array, text_of(piece, !in.empty())));
  };
  for (std::size_t i = 0; i < in.size(); ++i) require(in[i], i, false);
  for (std::size_t i = 0; i < out.size(); ++i) require(out[i], i, true);
}

// Which array is written first depends on their sizes: none may take what another one writes. The
// two of a pair are left to the call that carries them.
void require_apart(CommunicatorImpl& impl,
                   Kind kind,
                   std::span<const ConstArrayView> in,
                   std::span<const ArrayView> out) {
  std::vector<Piece> pieces;
  pieces.reserve(in.size() + out.size());
  const auto add = [&](ConstArrayView array, std::size_t index, bool is_out) {
    const auto* first = static_cast<const std::byte*>(array.data());
    if (array.bytes() != 0) pieces.push_back({first, first + array.bytes(), index, is_out});
  };
  for (std::size_t i = 0; i < out.size(); ++i) add(out[i], i, true);
  for (std::size_t i = 0; i < in.size(); ++i) add(in[i], i, false);
  std::ranges::sort(pieces, std::less<>(), &Piece::first);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t k = i + 1; k < pieces.size() && pieces[k].first < pieces[i].last; ++k) {
      const Piece &a = pieces[i], &b = pieces[k];
      if ((!a.is_out && !b.is_out) || (a.is_out != b.is_out && a.index == b.index)) continue;
      const bool has_in = !in.empty();
      impl.refuse_call(kind,
                       text_of(a, has_in) + " and " + text_of(b, has_in) +
                           " overlap; give each array once, and arrays apart");
    }
  }
}

}  // namespace

void Communicator::all_reduce_coalesced(std::span<const ArrayView> arrays, const ReduceOptions& o) {
  require_arrays(*impl_, Kind::kAllReduce, {}, arrays);
  require_apart(*impl_, Kind::kAllReduce, {}, arrays);
  packed_in_place(*impl_,
                  arrays,
                  {.kind = Kind::kAllReduce,
                   .in_place = true,
                   .op = o.op,
                   .deadline = o.deadline,
                   .stream = o.stream});
}

void Communicator::broadcast_coalesced(std::span<const ArrayView> arrays, const RootOptions& o) {
  require_arrays(*impl_, Kind::kBroadcast, {}, arrays);
  packed_in_place(*impl_,
                  arrays,
                  {.kind = Kind::kBroadcast,
                   .in_place = true,
                   .root = o.root,
                   .deadline = o.deadline,
                   .stream = o.stream});
}

// Packed, a rank's parts lie together: [rank][array]. The arrays themselves are [array][rank].
void Communicator::all_gather_coalesced(std::span<const ConstArrayView> in,
                                        std::span<const ArrayView> out,
                                        const CallOptions& o) {
  impl_->require_usable();
  require_arrays(*impl_, Kind::kAllGather, in, out);
  check_pairs(*impl_, Kind::kAllGather, in, out, true);
  require_apart(*impl_, Kind::kAllGather, in, out);
  const auto n = static_cast<std::size_t>(size());
  sort_out(
      out,
      [&](std::span<const std::size_t> small) {
        std::vector<std::byte> own;
        for (const std::size_t i : small) {
          const auto* bytes = static_cast<const std::byte*>(in[i].data());
          own.insert(own.end(), bytes, bytes + in[i].bytes());
        }
        std::vector<std::byte> all(own.size() * n);
        impl_->run({.kind = Kind::kAllGather,
                    .in = {own.data(), own.size(), DType::kUInt8},
                    .out = {all.data(), all.size(), DType::kUInt8},
                    .extra = hash_list(out),
                    .deadline = o.deadline});
        const std::byte* from = all.data();
        for (std::size_t r = 0; r < n; ++r) {
          for (const std::size_t i : small) {
            copy(at(out[i]) + r * in[i].bytes(), from, in[i].bytes());
            from += in[i].bytes();
          }
        }
      },
      [&](std::size_t i) { all_gather(in[i], out[i], o); });
}

void Communicator::reduce_scatter_coalesced(std::span<const ConstArrayView> in,
                                            std::span<const ArrayView> out,
                                            const ReduceOptions& o) {
  impl_->require_usable();
  require_arrays(*impl_, Kind::kReduceScatter, in, out);
  check_pairs(*impl_, Kind::kReduceScatter, in, out, false);
  require_apart(*impl_, Kind::kReduceScatter, in, out);
  const auto n = static_cast<std::size_t>(size());
  sort_out(
      out,
      [&](std::span<const std::size_t> small) {
        const DType dtype = out[small.front()].dtype();
        std::size_t share = 0;
        for (const std::size_t i : small) share += out[i].count();
        std::vector<std::byte> whole(share * n * size_of(dtype));
        std::byte* to = whole.data();
        for (std::size_t r = 0; r < n; ++r) {
          for (const std::size_t i : small) {
            const auto* bytes = static_cast<const std::byte*>(in[i].data());
            copy(to, bytes + r * out[i].bytes(), out[i].bytes());
            to += out[i].bytes();
          }
        }
        std::vector<std::byte> own(share * size_of(dtype));
        impl_->run({.kind = Kind::kReduceScatter,
                    .in = {whole.data(), share * n, dtype},
                    .out = {own.data(), share, dtype},
                    .op = o.op,
                    .extra = hash_list(out),
                    .deadline = o.deadline});
        const std::byte* from = own.data();
        for (const std::size_t i : small) {
          copy(out[i].data(), from, out[i].bytes());
          from += out[i].bytes();
        }
      },
      [&](std::size_t i) { reduce_scatter(in[i], out[i], o); });
}

}  // namespace hocket
