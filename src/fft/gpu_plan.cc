// A transform of arrays in GPUs' memory, as work of a stream. After each leg a rank's part lies on
// a shelf, whence those who want it for the next leg copy it: from there where all reach each
// other's memory, else it is packed, exchanged and unpacked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "fft/gpu_copy.h"
#include "fft/gpu_scale.h"
#include "fft/gpu_transform.h"
#include "fft/plan.h"
#include "hocket/error.h"
#include "hocket/gpu.h"
#include "hocket/symmetric.h"

namespace hocket::fft {
namespace {

std::size_t is_inverse(FftDirection direction) noexcept {
  return direction == FftDirection::kInverse ? 1 : 0;
}

// What a rank's elements travel as, so that counts are elements.
DType carrier(std::size_t element) noexcept {
  return element == 16 ? DType::kComplex128 : element == 8 ? DType::kFloat64 : DType::kFloat32;
}

// How a rank gets its part for a leg. Of each rank that holds some of it: from a shelf, or from a
// packed piece.
struct Fetch {
  std::vector<Copy> pulls;                   // by rank
  std::vector<Copy> packs;                   // by rank; where shelves are not shared
  std::vector<std::size_t> sends, receives;  // elements, by rank
  std::vector<std::size_t> packed, places;   // bytes into what is sent and received, by rank
};

class GpuPlan final : public FftPlan {
 public:
  GpuPlan(Communicator& comm,
          const Extents& shape,
          const Box& from,
          const Box& to,
          const FftOptions& options)
      : FftPlan(comm, shape, from, to, options) {
    before_barrier([&] {
      device_ = Gpu(*options.gpu).context();
      cufft_ = Cufft::find(options.library_folders);
    });
    barrier(0);
    const cuda::DeviceGuard guard(*device_);
    make_shelves();
    before_barrier([&] {
      for (std::size_t k = 0; k < legs_.size(); ++k) add(k);
      scale_.emplace(device_, is_double());
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
    // What the plan keeps is used by one execution after the other, whatever their streams.
    if (has_run_) end_->hold(on.handle());
    if (legs_.size() == 1 || !is_shared()) barrier(step, on);
    for (std::size_t k = 0; k < legs_.size(); ++k) {
      void* const source = k == 0 ? const_cast<void*>(in.data()) : fetch(k, out.data(), step, on);
      const bool is_last = k + 1 == legs_.size();
      void* const target = is_last ? out.data() : shelf(1 - at_);
      transform(k, source, target, direction, on);
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

  // Two, used in turn: nobody overwrites what another may still read.
  void make_shelves() {
    const std::size_t bytes = shelf_bytes();
    if (bytes == 0) return;
    try {
      const SymmetricOptions wanted{.memory = MemoryKind::kCuda, .deadline = options_.deadline};
      for (int i = 0; i < 2; ++i) {
        symmetric_.push_back(comm_.symmetric().empty(bytes, DType::kUInt8, wanted));
      }
      return;
    } catch (const InvalidArgument&) {  // not all reach each other's memory, which all are told
      symmetric_.clear();
    }
    before_barrier([&] {
      for (int i = 0; i < 2; ++i) own_.emplace_back(device_, bytes);
    });
    barrier(0);
  }

  std::byte* shelf(std::size_t which) const {
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
    std::size_t sent = 0, got = 0;
    for (std::size_t r = 0; r < leg.before.size(); ++r) {
      const Box in = intersection(last.after[r], leg.before[me()]);
      const Box out = intersection(last.after[me()], leg.before[r]);
      fetch.pulls.emplace_back(in, Lay::packed(is_shared() ? last.after[r] : in), goal, element(k));
      if (is_shared()) continue;
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
    need(gathered_, room);
    if (is_shared()) return;
    need(packed_, sent);
    need(received_, got);
  }

  // Room for so many bytes, at least.
  void need(std::optional<cuda::DeviceBuffer>& buffer, std::size_t bytes) {
    if (bytes > (buffer ? buffer->bytes() : 0)) buffer.emplace(device_, bytes);
  }

  // Makes what a direction needs; only the first time there is anything to do.
  void prepare(FftDirection direction) {
    auto& transforms = transforms_[is_inverse(direction)];
    if (transforms.size() == legs_.size()) return;
    transforms.clear();
    for (const Leg& leg : legs_) {
      const FftKind kind = leg.turns ? options_.kind : FftKind::kComplex;
      const Box& box = kind == FftKind::kComplexToReal ? leg.after[me()] : leg.before[me()];
      auto& made = transforms.emplace_back();
      if (leg.axes.empty() || box.is_empty()) continue;
      made = std::make_unique<GpuTransform>(
          cufft_, kind, is_double(), is_inverse(direction) == 1, box.shape(), leg.axes);
    }
  }

  // This rank's part for leg k, which lies on the shelves.
  void* fetch(std::size_t k, void* out, std::uint64_t step, StreamRef on) {
    const Fetch& fetch = fetches_[k];
    const cuda::Driver& driver = device_->driver();
    const bool is_last = k + 1 == legs_.size();
    // What is not transformed goes straight where it is wanted.
    void* const goal = !legs_[k].axes.empty() ? data_of(gathered_) : is_last ? out : shelf(1 - at_);
    const std::size_t ranks = fetch.pulls.size();
    if (is_shared()) {
      barrier(step, on);
      for (std::size_t i = 0; i < ranks; ++i) {  // each begins with itself
        const std::size_t r = (me() + i) % ranks;
        const void* const from = symmetric_[at_].peer(static_cast<int>(r)).data();
        copy_on(driver, fetch.pulls[r], from, goal, on.handle());
      }
      return goal;
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      copy_on(driver, fetch.packs[r], shelf(at_), data_of(packed_) + fetch.packed[r], on.handle());
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
      copy_on(driver, fetch.pulls[r], data_of(received_) + fetch.places[r], goal, on.handle());
    }
    return goal;
  }

  static std::byte* data_of(std::optional<cuda::DeviceBuffer>& buffer) noexcept {
    return buffer ? static_cast<std::byte*>(buffer->data()) : nullptr;
  }

  void transform(std::size_t k, void* source, void* target, FftDirection direction, StreamRef on) {
    const Leg& leg = legs_[k];
    const cuda::Driver& driver = device_->driver();
    const Box& before = leg.before[me()];
    const std::size_t bytes = before.count() * element(k);
    if (before.is_empty()) return;
    if (leg.axes.empty()) {
      if (source != target) cuda::copy(driver, target, source, bytes, on.handle());
      return;
    }
    const GpuTransform& transform = *transforms_[is_inverse(direction)][k];
    const bool in_place = source == target;
    // The user's array stays as it is.
    if (k == 0 &&
        ((in_place && !transform.works_in_place()) || (!in_place && !transform.keeps_input()))) {
      cuda::copy(driver, data_of(first_), source, bytes, on.handle());
      source = data_of(first_);
    }
    transform.run(source, target, on.handle());
    const double by = k == scaling_leg() ? factor(direction) : 1;
    if (by == 1) return;
    const std::size_t reals =
        leg.after[me()].count() * element(k + 1) / size_of(options_.precision);
    scale_->run(target, reals, by, on.handle());
  }

  std::shared_ptr<const cuda::DeviceContext> device_;
  std::shared_ptr<const Cufft> cufft_;
  std::vector<SymmetricArray> symmetric_;  // the shelves, where all reach them
  std::vector<cuda::DeviceBuffer> own_;    // else
  std::size_t at_ = 0;                     // the shelf that was filled last
  std::vector<Fetch> fetches_;             // by leg
  std::optional<cuda::DeviceBuffer> first_, gathered_, packed_, received_;
  std::optional<GpuScale> scale_;
  std::optional<cuda::OwnedEvent> end_;  // of the last execution
  bool has_run_ = false;
  std::array<std::vector<std::unique_ptr<GpuTransform>>, 2> transforms_;  // by direction and leg
};

}  // namespace

std::unique_ptr<FftPlan> gpu_plan(Communicator& comm,
                                  const Extents& shape,
                                  const Box& from,
                                  const Box& to,
                                  const FftOptions& options) {
  return std::make_unique<GpuPlan>(comm, shape, from, to, options);
}

}  // namespace hocket::fft
