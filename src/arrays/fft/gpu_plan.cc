// A transform of arrays in GPUs' memory, as work of a stream. After each leg a rank's part lies in
// a buffer, from which other ranks take it for the next leg. If all ranks reach each other's
// memory, they copy the parts directly. Otherwise the parts are packed, exchanged and unpacked.
//
// Over links between GPUs, slices travel while other slices are transformed. If a leg does not
// transform the first axis, its results travel in slices:
//
//   stream   transform 0 | transform 1 | transform 2 |        | next leg
//   link                 | copy 0      | copy 1      | copy 2 |
//
// Otherwise, if the next leg does not transform the first axis, that leg transforms slices as they
// arrive.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

#include "arrays/fft/exchange.h"
#include "arrays/fft/gpu_copy.h"
#include "arrays/fft/gpu_scale.h"
#include "arrays/fft/gpu_transform.h"
#include "arrays/fft/plan.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"
#include "hocket/error.h"
#include "hocket/gpu.h"
#include "hocket/symmetric.h"

namespace hocket::fft {
namespace {

std::size_t is_inverse(FftDirection direction) noexcept {
  return direction == FftDirection::kInverse ? 1 : 0;
}

constexpr std::size_t kMostSlices = 8;

// The copies by which a rank gets its part for a leg. Each rank that holds some of the part gives
// it out of a shared buffer, or as a packed message.
struct Fetch {
  std::vector<std::vector<Copy>> pulls;      // by slice and rank
  std::vector<Copy> packs;                   // by rank; if buffers are not shared
  std::vector<std::size_t> sends, receives;  // elements, by rank
  // offsets in the send and receive buffers, in bytes, by rank
  std::vector<std::size_t> packed, places;
};

class GpuPlan final : public FftPlan {
 public:
  GpuPlan(Communicator& comm,
          const Extents& shape,
          const Box& from,
          const Box& to,
          const FftOptions& options,
          std::size_t slice_bytes)
      : FftPlan(comm, shape, from, to, options) {
    before_barrier([&] {
      device_ = Gpu(*options.gpu).context();
      cufft_ = Cufft::find(options.library_folders);
    });
    barrier(0);
    const cuda::DeviceGuard guard(*device_);
    make_shelves();
    agree_on_slices(slice_bytes);
    before_barrier([&] {
      for (std::size_t k = 0; k < legs_.size(); ++k) add(k);
      scale_.emplace(device_, is_double());
      copy_.emplace(device_, is_double() ? 8 : 4);
      aside_.emplace(device_);
      met_.emplace(device_);
      for (std::size_t j = 0; j < slices_; ++j) arrived_.emplace_back(device_);
      end_.emplace(device_);
      prepare(own_direction());
    });
    barrier(0);
  }
  ~GpuPlan() override {
    const cuda::DeviceGuard guard(*device_);
    for (auto& transforms : transforms_) transforms.clear();
  }

  const std::string& library() const noexcept override { return cufft_->name(); }
  bool is_shared() const noexcept override { return !symmetric_.empty(); }

  void execute(ConstArrayView in,
               ArrayView out,
               std::optional<FftDirection> wanted,
               std::optional<StreamRef> stream) override {
    const StreamRef on = stream.value_or(StreamRef());
    const cuda::DeviceGuard guard(*device_);
    FftDirection direction{};
    before_barrier([&] {
      direction = check(in, out, wanted, MemoryKind::kCuda);
      require_here(in, "in");
      require_here(out, "out");
      if (cuda::capture_of(device_->driver(), on.handle()) != cuda::Capture::kNone) {
        throw InvalidArgument("stream is being captured into a graph, which transforms cannot be");
      }
      prepare(direction);
    });
    const std::uint64_t step = direction == FftDirection::kInverse ? 2 : 1;
    // Executions share the plan's memory. So each execution waits for the one before it, also on
    // another stream.
    if (has_run_) end_->hold(on.handle());
    if (legs_.size() == 1 || !is_shared()) barrier(step, on);
    void* source = const_cast<void*>(in.data());
    for (std::size_t k = 0; k < legs_.size(); ++k) {
      const bool is_last = k + 1 == legs_.size();
      if (k > 0) source = fetch(k, out.data(), step, on);
      run_leg(k, source, is_last ? out.data() : buffer(1 - at_), direction, step, on);
      if (!is_last) at_ = 1 - at_;
    }
    end_->record(on.handle());
    has_run_ = true;
  }

 private:
  void require_here(ConstArrayView array, const char* name) const {
    if (array.count() == 0) return;
    const int gpu = cuda::gpu_of(device_->driver(), array, name);
    if (gpu == device_->ordinal()) return;
    throw InvalidArgument(fmt::format(
        "{} lies on GPU {}, and the plan is for GPU {}", name, gpu, device_->ordinal()));
  }

  // Makes two buffers, used alternately, so that no rank overwrites data that another may still
  // read.
  void make_shelves() {
    const std::size_t bytes = shelf_bytes();
    if (bytes == 0) return;
    try {
      const SymmetricOptions wanted{.memory = MemoryKind::kCuda, .deadline = options_.deadline};
      for (int i = 0; i < 2; ++i) {
        symmetric_.push_back(comm_.symmetric().empty(bytes, DType::kUInt8, wanted));
      }
      return;
    } catch (const InvalidArgument&) {  // some GPUs do not reach each other; thrown on all ranks
      symmetric_.clear();
    }
    before_barrier([&] {
      for (int i = 0; i < 2; ++i) own_.emplace_back(device_, bytes);
    });
    barrier(0);
  }

  // Finds out which buffers lie on other GPUs. Either all ranks use slices or none. Collective.
  void agree_on_slices(std::size_t bytes) {
    std::int32_t sees_far = 0, all_do = 0;
    before_barrier([&] {
      for (std::size_t r = 0; r < legs_[0].before.size(); ++r) {
        const void* const there =
            is_shared() ? symmetric_[0].peer(static_cast<int>(r)).data() : nullptr;
        const bool is_far =
            r != me() && there != nullptr &&
            cuda::whereabouts(device_->driver(), there).device != device_->ordinal();
        reaches_.push_back(is_far ? Nearness::kFar : Nearness::kNear);
        if (is_far) sees_far = 1;
      }
      sees_far_ = sees_far != 0;
    });
    barrier(0);
    if (!is_shared()) return;
    comm_.all_reduce(ConstArrayView(&sees_far, 1, DType::kInt32),
                     ArrayView(&all_do, 1, DType::kInt32),
                     {.op = ReduceOp::kMin, .deadline = options_.deadline});
    if (all_do != 0) {
      slices_ = std::clamp<std::size_t>(shelf_bytes() / bytes, 1, kMostSlices);
    }
  }

  bool leaves_first(std::size_t k) const {
    const std::vector<std::size_t>& axes = legs_[k].axes;
    return slices_ > 1 && !axes.empty() && axes[0] != 0;
  }
  // comes_early: leg k's input comes in slices, while the leg before makes them. comes_late: leg k
  // transforms slices as they arrive.
  bool comes_early(std::size_t k) const {
    return k > 0 && k < legs_.size() && leaves_first(k - 1) && !legs_[k].axes.empty();
  }
  bool comes_late(std::size_t k) const { return k > 0 && !comes_early(k) && leaves_first(k); }
  // Number of slices in which a leg is transformed.
  std::size_t slices(std::size_t k) const {
    return comes_early(k + 1) || comes_late(k) ? slices_ : 1;
  }

  std::byte* buffer(std::size_t which) const {
    return is_shared() ? symmetric_[which].data<std::byte>()
                       : static_cast<std::byte*>(own_[which].data());
  }

  void add(std::size_t k) {
    const Leg& leg = legs_[k];
    std::size_t room = leg.before[me()].count() * element(k);
    Fetch& fetch = fetches_.emplace_back();
    if (k == 0) return need(first_, leg.axes.empty() ? 0 : room);
    const Leg& last = legs_[k - 1];
    const Lay goal = Lay::packed(leg.before[me()]), held = Lay::packed(last.after[me()]);
    const std::vector<Box> mine = slices_of(leg.before[me()], comes_late(k) ? slices_ : 1);
    std::size_t sent = 0, got = 0;
    fetch.pulls.resize(comes_early(k) || comes_late(k) ? slices_ : 1);
    for (std::size_t r = 0; r < leg.before.size(); ++r) {
      if (is_shared()) {
        const std::vector<Box> theirs = slices_of(last.after[r], comes_early(k) ? slices_ : 1);
        for (std::size_t j = 0; j < fetch.pulls.size(); ++j) {
          const Box in =
              intersection(theirs[theirs.size() == 1 ? 0 : j], mine[mine.size() == 1 ? 0 : j]);
          fetch.pulls[j].emplace_back(in, Lay::packed(last.after[r]), goal, element(k));
        }
        continue;
      }
      const Box in = intersection(last.after[r], leg.before[me()]);
      const Box out = intersection(last.after[me()], leg.before[r]);
      fetch.pulls[0].emplace_back(in, Lay::packed(in), goal, element(k));
      fetch.packs.emplace_back(out, held, Lay::packed(out), element(k));
      fetch.sends.push_back(out.count());
      fetch.receives.push_back(in.count());
      fetch.packed.push_back(sent);
      fetch.places.push_back(got);
      sent += out.count() * element(k);
      got += in.count() * element(k);
    }
    fetch.packed.push_back(sent);
    fetch.places.push_back(got);
    need(gathered_[k % 2], room);
    if (is_shared()) return;
    need(packed_, sent);
    need(received_, got);
  }

  // Makes `buffer` hold at least `bytes` bytes.
  void need(std::optional<cuda::DeviceBuffer>& buffer, std::size_t bytes) {
    if (bytes > (buffer ? buffer->bytes() : 0)) buffer.emplace(device_, bytes);
  }

  // Builds the transforms for a direction, at its first use.
  void prepare(FftDirection direction) {
    auto& transforms = transforms_[is_inverse(direction)];
    if (transforms.size() == legs_.size()) return;
    transforms.clear();
    for (std::size_t k = 0; k < legs_.size(); ++k) {
      const Leg& leg = legs_[k];
      auto& made = transforms.emplace_back();
      if (leg.axes.empty()) continue;
      made = std::make_unique<SlicedTransform>(
          cufft_,
          leg.turns ? options_.kind : FftKind::kComplex,
          is_double(),
          is_inverse(direction) == 1,
          std::array{leg.before[me()], leg.after[me()]},
          leg.axes,
          slices(k),
          SlicedTransform::Elements{.before = element(k), .after = element(k + 1)});
    }
  }

  // Returns the memory with this rank's part for leg k. The part may arrive there later, slice by
  // slice.
  void* fetch(std::size_t k, void* out, std::uint64_t step, StreamRef on) {
    const Fetch& fetch = fetches_[k];
    const bool is_last = k + 1 == legs_.size();
    // A leg that transforms nothing writes straight to the result.
    void* const goal = !legs_[k].axes.empty() ? data_of(gathered_[k % 2])
                       : is_last              ? out
                                              : buffer(1 - at_);
    if (comes_early(k)) return goal;
    const std::size_t ranks = legs_[k].before.size();
    if (is_shared()) {
      barrier(step, on);
      for (std::size_t j = 0; j < fetch.pulls.size(); ++j) pull_far(k, j, at_, goal, on);
      if (!comes_late(k)) pull_near(k, 0, at_, goal, on);
      return goal;
    }
    const auto near = [&](const Copy& copy, const void* from, void* to) {
      copy_->run(copy, from, to, on.handle(), Nearness::kNear);
    };
    for (std::size_t r = 0; r < ranks; ++r) {
      near(fetch.packs[r], buffer(at_), data_of(packed_) + fetch.packed[r]);
    }
    const auto view = [&](std::optional<cuda::DeviceBuffer>& buffer, std::size_t bytes) {
      return ArrayView(data_of(buffer),
                       bytes / element(k),
                       carrier(element(k)),
                       MemoryKind::kCuda,
                       device_->ordinal());
    };
    comm_.all_to_all_v(view(packed_, fetch.packed.back()),
                       {.counts = fetch.sends},
                       view(received_, fetch.places.back()),
                       {.counts = fetch.receives},
                       {.deadline = options_.deadline, .stream = on});
    for (std::size_t r = 0; r < ranks; ++r) {
      near(fetch.pulls[0][r], data_of(received_) + fetch.places[r], goal);
    }
    return goal;
  }

  // Copies a slice of leg k's input from the buffers `which` of other GPUs. These copies run over
  // links, beside the stream. `pull_near` copies the rest, and makes the stream wait for them.
  void pull_far(std::size_t k, std::size_t slice, std::size_t which, void* goal, StreamRef on) {
    if (!sees_far_) return;
    met_->record(on.handle());
    met_->hold(aside_->get());
    pull(k, slice, which, goal, aside_->get(), Nearness::kFar);
    arrived_[slice].record(aside_->get());
  }
  void pull_near(std::size_t k, std::size_t slice, std::size_t which, void* goal, StreamRef on) {
    pull(k, slice, which, goal, on.handle(), Nearness::kNear);
    if (sees_far_) arrived_[slice].hold(on.handle());
  }
  void pull(std::size_t k,
            std::size_t slice,
            std::size_t which,
            void* goal,
            cuda::Stream stream,
            Nearness reach) {
    const std::vector<Copy>& pulls = fetches_[k].pulls[slice];
    for (std::size_t i = 0; i < pulls.size(); ++i) {  // each rank begins with itself
      const std::size_t r = (me() + i) % pulls.size();
      if (reaches_[r] != reach || pulls[r].run() == 0) continue;
      const void* const from = symmetric_[which].peer(static_cast<int>(r)).data();
      copy_->run(pulls[r], from, goal, stream, reach);
    }
  }

  static std::byte* data_of(std::optional<cuda::DeviceBuffer>& buffer) noexcept {
    return buffer ? static_cast<std::byte*>(buffer->data()) : nullptr;
  }

  void run_leg(std::size_t k,
               void* source,
               void* target,
               FftDirection direction,
               std::uint64_t step,
               StreamRef on) {
    const Leg& leg = legs_[k];
    const cuda::Driver& driver = device_->driver();
    const std::size_t bytes = leg.before[me()].count() * element(k);
    if (leg.axes.empty()) {
      if (source != target && bytes > 0) cuda::copy(driver, target, source, bytes, on.handle());
      return;
    }
    const SlicedTransform& transform = *transforms_[is_inverse(direction)][k];
    const bool in_place = source == target;
    // Copy the user's array first if the transform would overwrite it.
    if (k == 0 && bytes > 0 &&
        ((in_place && !transform.works_in_place()) || (!in_place && !transform.keeps_input()))) {
      cuda::copy(driver, data_of(first_), source, bytes, on.handle());
      source = data_of(first_);
    }
    const double by = k == scaling_leg() ? factor(direction) : 1;
    const std::size_t reals = element(k + 1) / size_of(options_.precision);  // per element
    for (std::size_t j = 0; j < slices(k); ++j) {
      if (comes_late(k)) pull_near(k, j, at_, source, on);
      const SlicedTransform::Made made = transform.run(j, source, target, on.handle());
      if (by != 1) scale_->run(made.at, made.elements * reals, by, on.handle());
      if (!comes_early(k + 1)) continue;
      barrier(step, on);
      pull_far(k + 1, j, 1 - at_, data_of(gathered_[(k + 1) % 2]), on);
    }
    if (!comes_early(k + 1)) return;
    for (std::size_t j = 0; j < slices_; ++j) {
      pull_near(k + 1, j, 1 - at_, data_of(gathered_[(k + 1) % 2]), on);
    }
  }

  std::shared_ptr<const cuda::DeviceContext> device_;
  std::shared_ptr<const Cufft> cufft_;
  std::vector<SymmetricArray> symmetric_;  // the buffers, if all ranks reach them
  std::vector<cuda::DeviceBuffer> own_;    // the buffers otherwise
  std::size_t at_ = 0;                     // the buffer that was filled last
  std::vector<Fetch> fetches_;             // by leg
  std::optional<cuda::DeviceBuffer> first_, packed_, received_;
  std::array<std::optional<cuda::DeviceBuffer>, 2> gathered_;  // used alternately, by leg
  std::optional<GpuScale> scale_;
  std::optional<GpuCopy> copy_;
  std::vector<Nearness> reaches_;           // how this GPU reaches the buffers, by rank
  bool sees_far_ = false;                   // true if any is far
  std::size_t slices_ = 1;                  // number of slices of a part
  std::optional<cuda::OwnedStream> aside_;  // for slices that come over links
  std::optional<cuda::OwnedEvent> met_;
  std::deque<cuda::OwnedEvent> arrived_;  // by slice
  std::optional<cuda::OwnedEvent> end_;   // end of the last execution
  bool has_run_ = false;
  std::array<std::vector<std::unique_ptr<SlicedTransform>>, 2> transforms_;  // by direction and leg
};

}  // namespace

std::unique_ptr<FftPlan> gpu_plan(Communicator& comm,
                                  const Extents& shape,
                                  const Box& from,
                                  const Box& to,
                                  const FftOptions& options,
                                  std::size_t slice_bytes) {
  return std::make_unique<GpuPlan>(comm, shape, from, to, options, slice_bytes);
}

}  // namespace hocket::fft
