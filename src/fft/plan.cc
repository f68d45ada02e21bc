// A transform from its plan to its execution. After each leg a rank's part lies on a shelf,
// whence those who want it for the next leg take it, a piece at a time, and transform that piece
// while the caches have it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "call/request.h"
#include "comm/communicator_impl.h"
#include "fft/agreement.h"
#include "fft/exchange.h"
#include "fft/stages.h"
#include "hocket/error.h"

namespace hocket {

using namespace fft;

namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;  // a core's own cache has room for two
constexpr std::size_t kMessagePieces = 4;
constexpr std::size_t kLine = 64;

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

std::size_t largest(const std::vector<Box>& boxes) {
  std::size_t most = 0;
  for (const Box& box : boxes) most = std::max(most, box.count());
  return most;
}

DType complex_of(DType real) {
  return real == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
}

}  // namespace

struct Fft::Plan {
  Plan(Communicator& c, const Extents& shape, const Box& from, const Box& to, const FftOptions& o)
      : comm(c), options(o), agreed(agree(c, shape, from, to, o, mark())) {
    in_dtype = o.kind == FftKind::kRealToComplex ? o.precision : complex_of(o.precision);
    out_dtype = o.kind == FftKind::kComplexToReal ? o.precision : complex_of(o.precision);
    for (std::size_t i = agreed.wanted.first; i < shape.size(); ++i) transformed *= shape[i];
    const std::vector<Leg> legs = fft::route(agreed.wanted, agreed.from, agreed.to);
    // What a rank cannot do it refuses, in the barrier's place.
    before_call([&] { library = find_library(); });
    barrier(0);
    std::size_t shelf = 0;  // bytes
    bool is_real = o.kind == FftKind::kRealToComplex;
    std::vector<std::size_t> elements{size_of(in_dtype)};
    for (const Leg& leg : legs) {
      if (leg.turns) is_real = !is_real;
      elements.push_back(size_of(is_real ? o.precision : complex_of(o.precision)));
      if (&leg != &legs.back()) shelf = std::max(shelf, largest(leg.after) * elements.back());
    }
    shelves.emplace(comm, shelf, o.deadline);
    before_call([&] {
      for (std::size_t k = 0; k < legs.size(); ++k) {
        add(legs, k, elements[k], elements[k + 1]);
      }
      if (options.planning == FftPlanning::kMeasured) {
        prepare(o.kind == FftKind::kComplexToReal ? FftDirection::kInverse
                                                  : FftDirection::kForward);
      }
    });
    barrier(0);
  }

  std::uint64_t mark() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }

  template <typename F>
  void before_call(F&& part) {
    comm.impl()->before_call(engine::Kind::kBarrier, part);
  }

  // Of ranks that execute the same plan, and in the same direction.
  void barrier(std::uint64_t step) {
    comm.impl()->run({.kind = engine::Kind::kBarrier,
                      .digest = base::mix(agreed.token, step),
                      .deadline = options.deadline});
  }

  void add(const std::vector<Leg>& legs, std::size_t k, std::size_t before, std::size_t after) {
    const auto me = static_cast<std::size_t>(comm.rank());
    const Leg& leg = legs[k];
    const bool is_first = k == 0, is_shared = shelves->is_shared();
    const std::size_t all = largest(leg.before) * before;
    const std::size_t count =
        is_shared ? std::max<std::size_t>(1, leg.before[me].count() * before / kPieceBytes)
                  : std::clamp<std::size_t>(all / kPieceBytes, 1, kMessagePieces);
    Part& part =
        *parts.emplace_back(std::make_unique<Part>(leg, me, is_first, count, options.kind));
    part.element_before = before;
    part.element_after = after;
    if (!is_first && !is_shared) {
      part.messages =
          std::make_unique<Messages>(comm, legs[k - 1], leg, count, before, options.deadline);
    }
    for (Piece& piece : part.pieces) {
      if (piece.before.is_empty()) {
        piece.pulls.resize(leg.before.size());
        continue;
      }
      piece.gathered = Lay::padded(piece.before, before);
      piece.made = Lay::padded(piece.after, after);
      piece.store = Copy(piece.after, piece.made, part.target, after);
      if (is_first) {
        piece.pulls.emplace_back(piece.before, part.source, part.target, before);
        continue;
      }
      const Lay& goal = part.transforms_any() ? piece.gathered : part.target;
      for (const Box& held : legs[k - 1].after) {
        const Box shared = intersection(held, piece.before);
        piece.pulls.emplace_back(shared, Lay::packed(is_shared ? held : shared), goal, before);
      }
    }
    if (is_first || !part.transforms_any()) return;
    gathered.resize(std::max(gathered.size(), part.room() + kLine));
    finished.resize(gathered.size());
  }

  // Makes what a direction needs; only the first time there is anything to do.
  void prepare(FftDirection direction) {
    for (const auto& part : parts) {
      part->make(*library,
                 options.precision == DType::kFloat64,
                 direction == FftDirection::kInverse,
                 options.planning,
                 part == parts.front());
    }
  }

  double factor(FftDirection direction) const {
    const bool forward = direction == FftDirection::kForward;
    const double n = static_cast<double>(transformed);
    switch (options.norm) {
      case FftNorm::kBackward:
        return forward ? 1 : 1 / n;
      case FftNorm::kForward:
        return forward ? 1 / n : 1;
      case FftNorm::kOrtho:
        return 1 / std::sqrt(n);
      case FftNorm::kNone:
        return 1;
    }
    return 1;
  }

  // What a leg has made, which lies in `lay`.
  void scale_made(const Part& part, const Lay& lay, std::byte* made, double by) const {
    if (by == 1) return;
    const std::size_t reals = part.element_after / size_of(options.precision);
    if (options.precision == DType::kFloat64) {
      scale(reinterpret_cast<double*>(made), reals, lay, lay.box, by);
    } else {
      scale(reinterpret_cast<float*>(made), reals, lay, lay.box, static_cast<float>(by));
    }
  }

  // Throws what is wrong with this rank's arrays; takes what the call needs.
  FftDirection check(ConstArrayView in, ArrayView out, std::optional<FftDirection> direction) {
    if (in.memory() != MemoryKind::kHost || out.memory() != MemoryKind::kHost) {
      throw InvalidArgument("Fourier transforms are of arrays in host memory; copy them there");
    }
    call::require_array(in, "in");
    call::require_array(out, "out");
    const std::size_t wanted_in = parts.front()->source.box.count();
    const std::size_t wanted_out = parts.back()->target.box.count();
    if (in.dtype() != in_dtype || in.count() != wanted_in) {
      throw InvalidArgument(fmt::format("in is {}[{}], expected {}[{}] as the plan's box",
                                        name_of(in.dtype()),
                                        in.count(),
                                        name_of(in_dtype),
                                        wanted_in));
    }
    if (out.dtype() != out_dtype || out.count() != wanted_out) {
      throw InvalidArgument(fmt::format("out is {}[{}], expected {}[{}] as the plan's box",
                                        name_of(out.dtype()),
                                        out.count(),
                                        name_of(out_dtype),
                                        wanted_out));
    }
    if (in.data() != out.data() && overlap(in.data(), in.bytes(), out.data(), out.bytes())) {
      throw InvalidArgument("in and out overlap, and do not begin at one address");
    }
    const auto own =
        options.kind == FftKind::kComplexToReal ? FftDirection::kInverse : FftDirection::kForward;
    if (options.kind != FftKind::kComplex && direction.value_or(own) != own) {
      throw InvalidArgument(options.kind == FftKind::kRealToComplex
                                ? "real to complex is a forward transform, and direction is inverse"
                                : "complex to real is an inverse one, and direction is forward");
    }
    prepare(direction.value_or(own));
    return direction.value_or(own);
  }

  static std::byte* aligned(std::vector<std::byte>& room) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(room.data());
    return room.data() + (kLine - at % kLine) % kLine;
  }

  void first(const void* in, std::byte* target, FftDirection direction, double by, bool in_place) {
    Part& part = *parts.front();
    const Piece& piece = part.pieces.front();
    if (piece.before.is_empty()) return;
    if (!part.transforms_any()) {
      if (in != target) piece.pulls.front()(static_cast<const std::byte*>(in), target);
      return;
    }
    Transform& transform =
        *part.transforms[direction == FftDirection::kInverse ? 1 : 0][piece.variant];
    void* source = const_cast<void*>(in);  // of those that keep it
    if (in_place || !transform.keeps_input()) {
      std::memcpy(spare.data(), in, spare.size());
      source = spare.data();
    }
    transform.run(source, target);
    scale_made(part, part.target, target, by);
  }

  void later(std::size_t k, std::byte* target, FftDirection direction, double by) {
    Part& part = *parts[k];
    for (std::size_t j = 0; j < part.pieces.size(); ++j) {
      const Piece& piece = part.pieces[j];
      if (part.messages) part.messages->wait(j);
      if (piece.before.is_empty()) continue;
      std::byte* const goal = part.transforms_any() ? aligned(gathered) : target;
      // Each rank begins with itself, so that not all ask one.
      const auto ranks = piece.pulls.size(), me = static_cast<std::size_t>(comm.rank());
      for (std::size_t i = 0; i < ranks; ++i) {
        const std::size_t r = (me + i) % ranks;
        piece.pulls[r](part.messages ? part.messages->from(j, r) : shelves->of(static_cast<int>(r)),
                       goal);
      }
      if (!part.transforms_any()) continue;
      std::byte* const made = aligned(finished);
      part.transforms[direction == FftDirection::kInverse ? 1 : 0][piece.variant]->run(goal, made);
      scale_made(part, piece.made, made, by);
      piece.store(made, target);
    }
  }

  void execute(ConstArrayView in, ArrayView out, std::optional<FftDirection> wanted) {
    FftDirection direction{};
    const bool alone = parts.size() == 1;
    const bool in_place = alone && in.data() == out.data();
    before_call([&] {
      direction = check(in, out, wanted);
      const auto& made = parts.front()->transforms[direction == FftDirection::kInverse ? 1 : 0];
      if (!made.empty() && (in_place || !made.front()->keeps_input())) spare.resize(in.bytes());
    });
    const std::uint64_t step = direction == FftDirection::kInverse ? 2 : 1;
    std::size_t scaled = 0;  // the last leg that transforms
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (parts[k]->transforms_any()) scaled = k;
    }
    const double by = factor(direction);
    auto* const result = static_cast<std::byte*>(out.data());
    if (alone || !shelves->is_shared()) barrier(step);
    first(in.data(), alone ? result : shelves->mine(), direction, scaled == 0 ? by : 1, in_place);
    for (std::size_t k = 1; k < parts.size(); ++k) {
      if (parts[k]->messages) {
        parts[k]->messages->begin(shelves->mine());
      } else {
        barrier(step);
      }
      const bool is_last = k + 1 == parts.size();
      std::byte* target = result;
      if (!is_last) {
        shelves->turn();
        target = shelves->mine();
        shelves->turn();
      }
      later(k, target, direction, k == scaled ? by : 1);
      shelves->turn();
    }
  }

  Communicator& comm;
  const FftOptions options;
  const Agreed agreed;
  DType in_dtype{}, out_dtype{};
  std::size_t transformed = 1;
  std::shared_ptr<Library> library;
  std::optional<Shelves> shelves;
  std::vector<std::unique_ptr<Part>> parts;  // before the library goes, their transforms do
  std::vector<std::byte> gathered, finished, spare;
};

Fft::Fft(Communicator& comm,
         const Extents& shape,
         const Box& from,
         const Box& to,
         const FftOptions& options)
    : plan_(std::make_unique<Plan>(comm, shape, from, to, options)) {}

Fft::Fft(Fft&&) noexcept = default;
Fft& Fft::operator=(Fft&&) noexcept = default;
Fft::~Fft() = default;

void Fft::operator()(ConstArrayView in, ArrayView out, std::optional<FftDirection> direction) {
  plan_->execute(in, out, direction);
}

Extents Fft::spectrum_of(Extents shape) {
  if (!shape.empty()) shape.back() = shape.back() / 2 + 1;
  return shape;
}

const std::string& Fft::library() const noexcept { return plan_->library->name(); }
bool Fft::is_shared() const noexcept { return plan_->shelves->is_shared(); }
std::size_t Fft::transposes() const noexcept { return plan_->parts.size() - 1; }

}  // namespace hocket
