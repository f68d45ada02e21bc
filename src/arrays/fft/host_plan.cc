// A transform of arrays in host memory. After each leg a rank's part lies in a buffer. The ranks
// that need it for the next leg take it from there, a piece at a time. They transform the piece
// while it is in their caches.
#include <algorithm>
#include <cstring>

#include "arrays/distribution/same_plan.h"
#include "arrays/fft/exchange.h"
#include "arrays/fft/plan.h"
#include "arrays/fft/stages.h"

namespace hocket::fft {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;  // two fit into a core's own cache
constexpr std::size_t kLargestPiece = std::size_t{1} << 20;  // the largest that caches help
constexpr std::size_t kPastCaches = std::size_t{4} << 20;    // larger than any core's own cache
constexpr std::size_t kMessagePieces = 4;
constexpr std::size_t kRoomLine = 64;

class HostPlan final : public FftPlan {
 public:
  HostPlan(Communicator& comm,
           const Extents& shape,
           const Box& from,
           const Box& to,
           const FftOptions& options)
      : FftPlan(comm, shape, from, to, options) {
    before_barrier([&] { library_ = find_library(); });
    barrier(0);
    buffers_.emplace(comm_, shelf_bytes(), options.deadline);
    before_barrier([&] {
      for (std::size_t k = 0; k < legs_.size(); ++k) add(k);
      if (options.planning == FftPlanning::kMeasured) prepare(own_direction());
    });
    barrier(0);
  }

  const std::string& library() const noexcept override { return library_->name(); }
  bool is_shared() const noexcept override { return buffers_->is_shared(); }

  void execute(ConstArrayView in,
               ArrayView out,
               std::optional<FftDirection> wanted,
               std::optional<StreamRef>) override {
    FftDirection direction{};
    const bool alone = parts_.size() == 1;
    const bool in_place = alone && in.data() == out.data();
    const auto prepare_mine = [&] {
      direction = check(in, out, wanted, MemoryKind::kHost);
      prepare(direction);
      const auto& made = parts_.front()->transforms[is_inverse(direction)];
      if (!made.empty() && (in_place || !made.front()->keeps_input())) spare_.resize(in.bytes());
    };
    const auto step_of = [&] { return std::uint64_t{1} + is_inverse(direction); };
    same_.before_executing(options_.deadline, prepare_mine, [&] { return digest_of(step_of()); });
    const std::uint64_t step = step_of();
    const std::size_t scaled = scaling_leg();
    const double by = factor(direction);
    auto* const result = static_cast<std::byte*>(out.data());
    first(in.data(), alone ? result : buffers_->mine(), direction, scaled == 0 ? by : 1, in_place);
    for (std::size_t k = 1; k < parts_.size(); ++k) {
      if (parts_[k]->messages) {
        parts_[k]->messages->begin(buffers_->mine());
      } else {
        barrier(step);
      }
      const bool is_last = k + 1 == parts_.size();
      std::byte* target = result;
      if (!is_last) {
        buffers_->turn();
        target = buffers_->mine();
        buffers_->turn();
      }
      later(k, {target, hands_out(k) ? result : nullptr, direction, k == scaled ? by : 1});
      buffers_->turn();
    }
  }

 private:
  static std::size_t is_inverse(FftDirection direction) noexcept {
    return direction == FftDirection::kInverse ? 1 : 0;
  }

  void add(std::size_t k) {
    const Leg& leg = legs_[k];
    const std::size_t before = element(k), after = element(k + 1);
    const bool is_first = k == 0, is_shared = buffers_->is_shared();
    std::size_t all = 0;
    for (const Box& box : leg.before) all = std::max(all, box.count() * before);
    std::size_t count =
        is_shared || is_first
            ? std::max<std::size_t>(1, leg.before[me()].count() * before / kPieceBytes)
            : std::clamp<std::size_t>(all / kPieceBytes, 1, kMessagePieces);
    const bool straight = is_first && !gains_by_pieces(leg, count);
    if (straight) count = 1;
    LegPart& part =
        *parts_.emplace_back(std::make_unique<LegPart>(leg, me(), count, options_.kind));
    part.element_before = before;
    part.element_after = after;
    part.gathers = !is_first || (!straight && !reads_lines(leg));
    part.stores = !straight;
    if (!is_first && !is_shared) {
      part.messages =
          std::make_unique<Messages>(comm_, legs_[k - 1], leg, count, before, options_.deadline);
    }
    for (Piece& piece : part.pieces) {
      if (piece.before.is_empty()) {
        piece.pulls.resize(leg.before.size());
        continue;
      }
      piece.gathered = Lay::padded(piece.before, before);
      piece.made = Lay::padded(piece.after, after);
      add_stores(k, piece);
      const Lay& goal = part.transforms_any() ? piece.gathered : part.target;
      if (is_first) {
        piece.pulls.emplace_back(piece.before, part.source, goal, before);
        continue;
      }
      for (const Box& held : legs_[k - 1].after) {
        const Box shared = intersection(held, piece.before);
        piece.pulls.emplace_back(shared, Lay::packed(is_shared ? held : shared), goal, before);
      }
      if (hands_out(k - 1)) piece.pulls[me()] = Copy();
    }
    if (!part.transforms_any()) return;
    gathered_.resize(std::max(gathered_.size(), part.room() + kRoomLine));
    finished_.resize(gathered_.size());
  }

  // Returns whether the first leg is quicker if it writes results with gaps into a cached piece,
  // and copies them from there.
  bool gains_by_pieces(const Leg& leg, std::size_t count) const {
    const Box& box = leg.after[me()];
    if (box.is_empty() || (leg.turns && options_.kind == FftKind::kComplexToReal)) return false;
    const std::size_t most = std::max(element(0), element(1));
    return Lay::packed(box).is_awkward(leg.axes, element(1)) &&
           pieces_of(box, leg.axes, count).front().count() * most <= kLargestPiece;
  }

  // True if the transform can read pieces of the first leg in place, from the source.
  bool reads_lines(const Leg& leg) const {
    const Lay source = Lay::packed(leg.before[me()]);
    const std::size_t last = source.box.axes() - 1;
    if (leg.axes.empty() || leg.axes.back() != last) return false;
    for (std::size_t i = 0; i < last; ++i) {
      if (source.strides[i] * element(0) % kRoomLine != 0) return false;
    }
    return true;
  }

  // True if the ranks that need leg k's result only copy it to their results. A rank's own part
  // then skips the buffer. The first leg is excluded, because its input may be in the result's
  // memory.
  bool hands_out(std::size_t k) const {
    return k > 0 && k + 2 == legs_.size() && legs_[k + 1].axes.empty() && buffers_->is_shared();
  }

  void add_stores(std::size_t k, Piece& piece) const {
    const LegPart& part = *parts_[k];
    if (!hands_out(k)) {
      piece.stores.emplace_back(piece.after, piece.made, part.target, part.element_after);
      return;
    }
    for (std::size_t r = 0; r < legs_[k].after.size(); ++r) {
      const Box& wanted = legs_[k + 1].before[r];
      piece.stores.emplace_back(intersection(piece.after, wanted),
                                piece.made,
                                r == me() ? Lay::packed(wanted) : part.target,
                                part.element_after);
    }
  }

  // Builds the transforms for a direction, at its first use.
  void prepare(FftDirection direction) {
    for (const auto& part : parts_) {
      part->make(*library_, is_double(), direction == FftDirection::kInverse, options_.planning);
    }
  }

  // Scales the result of a leg, which lies in `lay`.
  void scale_made(const LegPart& part, const Lay& lay, std::byte* made, double by) const {
    if (by == 1) return;
    const std::size_t reals = part.element_after / size_of(options_.precision);
    if (options_.precision == DType::kFloat64) {
      scale(reinterpret_cast<double*>(made), reals, lay, lay.box, by);
    } else {
      scale(reinterpret_cast<float*>(made), reals, lay, lay.box, static_cast<float>(by));
    }
  }

  static std::byte* aligned(std::vector<std::byte>& room) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(room.data());
    return room.data() + (kRoomLine - at % kRoomLine) % kRoomLine;
  }

  void first(const void* in, std::byte* target, FftDirection direction, double by, bool in_place) {
    LegPart& part = *parts_.front();
    if (part.pieces.front().before.is_empty()) return;
    auto* source = static_cast<std::byte*>(const_cast<void*>(in));  // the transforms keep it
    if (!part.transforms_any()) {
      if (in != target) part.pieces.front().pulls.front()(source, target, stores_of(part));
      return;
    }
    const auto& transforms = part.transforms[is_inverse(direction)];
    if (in_place || !transforms.front()->keeps_input()) {
      std::memcpy(spare_.data(), in, spare_.size());
      source = spare_.data();
    }
    if (!part.stores) {
      transforms.front()->run(source, target);
      scale_made(part, part.target, target, by);
      return;
    }
    for (const Piece& piece : part.pieces) {
      if (piece.before.is_empty()) continue;
      std::byte* from = source + part.source.offset(piece.before.lower()) * part.element_before;
      if (part.gathers) {
        from = aligned(gathered_);
        piece.pulls.front()(source, from);
      }
      finish(part, piece, from, {target, nullptr, direction, by});
    }
  }

  static core::Stores stores_of(const LegPart& part) noexcept {
    const bool is_long = part.target.box.count() * part.element_after >= kPastCaches;
    return is_long ? core::Stores::kStreaming : core::Stores::kCached;
  }

  // One execution of a leg. A value.
  struct Task {
    std::byte* target;
    std::byte* result;  // destination of the rank's own part, if not the target; else null
    FftDirection direction;
    double by;  // factor for the result
  };

  void finish(const LegPart& part, const Piece& piece, std::byte* from, const Task& task) {
    std::byte* const made = aligned(finished_);
    part.transforms[is_inverse(task.direction)][piece.variant]->run(from, made);
    scale_made(part, piece.made, made, task.by);
    for (std::size_t r = 0; r < piece.stores.size(); ++r) {
      const bool is_own = task.result != nullptr && r == me();
      piece.stores[r](made, is_own ? task.result : task.target, stores_of(part));
    }
  }

  void later(std::size_t k, const Task& task) {
    LegPart& part = *parts_[k];
    for (std::size_t j = 0; j < part.pieces.size(); ++j) {
      const Piece& piece = part.pieces[j];
      if (part.messages) part.messages->wait(j);
      if (piece.before.is_empty()) continue;
      std::byte* const goal = part.transforms_any() ? aligned(gathered_) : task.target;
      // Each rank begins with itself, so that the ranks do not all read from one rank at once.
      const auto ranks = piece.pulls.size(), me = static_cast<std::size_t>(comm_.rank());
      for (std::size_t i = 0; i < ranks; ++i) {
        const std::size_t r = (me + i) % ranks;
        piece.pulls[r](
            part.messages ? part.messages->from(j, r) : buffers_->of(static_cast<int>(r)),
            goal,
            part.transforms_any() ? core::Stores::kCached : stores_of(part));
      }
      if (part.transforms_any()) finish(part, piece, goal, task);
    }
  }

  std::shared_ptr<FftLibrary> library_;
  std::optional<ExchangeBuffers> buffers_;
  distribution::SamePlan same_{comm_, engine::Kind::kFft};
  std::vector<std::unique_ptr<LegPart>> parts_;  // after library_, which their transforms need
  std::vector<std::byte> gathered_, finished_, spare_;
};

}  // namespace

std::unique_ptr<FftPlan> host_plan(Communicator& comm,
                                   const Extents& shape,
                                   const Box& from,
                                   const Box& to,
                                   const FftOptions& options) {
  return std::make_unique<HostPlan>(comm, shape, from, to, options);
}

}  // namespace hocket::fft
