// A transform of arrays in the host's memory. After each leg a rank's part lies on a shelf, whence
// those who want it for the next leg take it, a piece at a time, and transform that piece while the
// caches have it.
#include <algorithm>
#include <cstring>

#include "distribution/same_plan.h"
#include "fft/exchange.h"
#include "fft/plan.h"
#include "fft/stages.h"

namespace hocket::fft {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;  // a core's own cache has room for two
constexpr std::size_t kMessagePieces = 4;
constexpr std::size_t kLine = 64;

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
    shelves_.emplace(comm, shelf_bytes(), options.deadline);
    before_barrier([&] {
      for (std::size_t k = 0; k < legs_.size(); ++k) add(k);
      if (options.planning == FftPlanning::kMeasured) prepare(own_direction());
    });
    barrier(0);
  }

  const std::string& library() const noexcept override { return library_->name(); }
  bool is_shared() const noexcept override { return shelves_->is_shared(); }

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
    first(in.data(), alone ? result : shelves_->mine(), direction, scaled == 0 ? by : 1, in_place);
    for (std::size_t k = 1; k < parts_.size(); ++k) {
      if (parts_[k]->messages) {
        parts_[k]->messages->begin(shelves_->mine());
      } else {
        barrier(step);
      }
      const bool is_last = k + 1 == parts_.size();
      std::byte* target = result;
      if (!is_last) {
        shelves_->turn();
        target = shelves_->mine();
        shelves_->turn();
      }
      later(k, target, direction, k == scaled ? by : 1);
      shelves_->turn();
    }
  }

 private:
  static std::size_t is_inverse(FftDirection direction) noexcept {
    return direction == FftDirection::kInverse ? 1 : 0;
  }

  void add(std::size_t k) {
    const Leg& leg = legs_[k];
    const std::size_t before = element(k), after = element(k + 1);
    const bool is_first = k == 0, is_shared = shelves_->is_shared();
    std::size_t all = 0;
    for (const Box& box : leg.before) all = std::max(all, box.count() * before);
    const std::size_t count =
        is_shared ? std::max<std::size_t>(1, leg.before[me()].count() * before / kPieceBytes)
                  : std::clamp<std::size_t>(all / kPieceBytes, 1, kMessagePieces);
    LegPart& part =
        *parts_.emplace_back(std::make_unique<LegPart>(leg, me(), is_first, count, options_.kind));
    part.element_before = before;
    part.element_after = after;
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
      piece.store = Copy(piece.after, piece.made, part.target, after);
      if (is_first) {
        piece.pulls.emplace_back(piece.before, part.source, part.target, before);
        continue;
      }
      const Lay& goal = part.transforms_any() ? piece.gathered : part.target;
      for (const Box& held : legs_[k - 1].after) {
        const Box shared = intersection(held, piece.before);
        piece.pulls.emplace_back(shared, Lay::packed(is_shared ? held : shared), goal, before);
      }
    }
    if (is_first || !part.transforms_any()) return;
    gathered_.resize(std::max(gathered_.size(), part.room() + kLine));
    finished_.resize(gathered_.size());
  }

  // Makes what a direction needs; only the first time there is anything to do.
  void prepare(FftDirection direction) {
    for (const auto& part : parts_) {
      part->make(*library_,
                 is_double(),
                 direction == FftDirection::kInverse,
                 options_.planning,
                 part == parts_.front());
    }
  }

  // What a leg has made, which lies in `lay`.
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
    return room.data() + (kLine - at % kLine) % kLine;
  }

  void first(const void* in, std::byte* target, FftDirection direction, double by, bool in_place) {
    LegPart& part = *parts_.front();
    const Piece& piece = part.pieces.front();
    if (piece.before.is_empty()) return;
    if (!part.transforms_any()) {
      if (in != target) piece.pulls.front()(static_cast<const std::byte*>(in), target);
      return;
    }
    Transform& transform = *part.transforms[is_inverse(direction)][piece.variant];
    void* source = const_cast<void*>(in);  // of those that keep it
    if (in_place || !transform.keeps_input()) {
      std::memcpy(spare_.data(), in, spare_.size());
      source = spare_.data();
    }
    transform.run(source, target);
    scale_made(part, part.target, target, by);
  }

  void later(std::size_t k, std::byte* target, FftDirection direction, double by) {
    LegPart& part = *parts_[k];
    for (std::size_t j = 0; j < part.pieces.size(); ++j) {
      const Piece& piece = part.pieces[j];
      if (part.messages) part.messages->wait(j);
      if (piece.before.is_empty()) continue;
      std::byte* const goal = part.transforms_any() ? aligned(gathered_) : target;
      // Each rank begins with itself, so that not all ask one.
      const auto ranks = piece.pulls.size(), me = static_cast<std::size_t>(comm_.rank());
      for (std::size_t i = 0; i < ranks; ++i) {
        const std::size_t r = (me + i) % ranks;
        piece.pulls[r](
            part.messages ? part.messages->from(j, r) : shelves_->of(static_cast<int>(r)), goal);
      }
      if (!part.transforms_any()) continue;
      std::byte* const made = aligned(finished_);
      part.transforms[is_inverse(direction)][piece.variant]->run(goal, made);
      scale_made(part, piece.made, made, by);
      piece.store(made, target);
    }
  }

  std::shared_ptr<FftLibrary> library_;
  std::optional<Shelves> shelves_;
  distribution::SamePlan same_{comm_};
  std::vector<std::unique_ptr<LegPart>> parts_;  // before the library goes, their transforms do
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
