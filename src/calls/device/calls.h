// Calls on arrays in GPUs' memory: numbered, recorded and compared like all others, but put on a
// stream, where they go on by themselves.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call/core.h"
#include "calls/call/planner.h"
#include "calls/device/blocks.h"
#include "calls/device/engines.h"
#include "calls/device/envelopes.h"
#include "calls/device/plan.h"
#include "calls/device/relay.h"
#include "calls/device/staging.h"
#include "calls/device/stream_order.h"
#include "calls/device/stream_times.h"
#include "calls/device/surroundings.h"
#include "calls/device/watch.h"
#include "calls/device/work.h"
#include "engines/nvshmem/heap.h"
#include "membership/failure/records.h"

namespace hocket::device {

// A call that the host alone can make, of any number of arrays. A value; views of the caller's.
struct Copies {
  std::span<const ConstArrayView> in;
  std::span<const ArrayView> out;
  engine::Signature shown;
  CallOptions options;
  bool wants_work = false;
};
// By what engine it is made, and what keeps that.
struct PlannedOnCopies {
  call::Plan plan;
  std::shared_ptr<void> keep;
};
// Gets the host's copies; those of what goes in are filled once the call begins.
using PlanOnCopies = std::function<PlannedOnCopies(const std::vector<std::byte*>& in,
                                                   const std::vector<std::byte*>& out)>;

// A resource, one a communicator that has had such a call; guarded by the communicator's turn.
class DeviceCalls {
 public:
  DeviceCalls(call::Core& owner, DeviceSurroundings& surroundings)
      : owner_(owner), surroundings_(surroundings), relay_(owner), envelopes_(owner) {}
  ~DeviceCalls();

  // Announces what it refuses.
  DevicePlan checked(const call::Request& request, call::CallStorage& storage);
  // Whether what was found of symmetric memory still holds.
  bool is_current(const DevicePlan& plan) const noexcept;
  // Make the call that `request` was planned for, and return when it is on its stream. `storage`:
  // of the plan, where nobody keeps it.
  void run(DevicePlan& plan, const call::Request& request, call::CallStorage storage = {});
  std::shared_ptr<call::Operation> start(DevicePlan& plan,
                                         const call::Request& request,
                                         call::CallStorage storage = {});

  // A stream has passed a call: raises nothing, but lets what went wrong there be known.
  void look_at_result() noexcept {
    if (watch_) watch_->look_at_result();
  }

  // Puts messages on the stream, which progress together. Waits on the host for who sends first,
  // where a source is any; the source of the first that comes in.
  int exchange(std::span<const Outgoing> outgoing,
               std::span<const Incoming> incoming,
               const MessageOptions& options);
  std::shared_ptr<call::Operation> start_exchange(std::span<const Outgoing> outgoing,
                                            std::span<const Incoming> incoming,
                                            const MessageOptions& options);

  // A call that the host alone can make, in the order of the stream. Returns when it is there.
  std::shared_ptr<call::Operation> start_on_copies(const Copies& copies, const PlanOnCopies& plan);

  // Makes a call that only the host can make on copies of the arrays, and waits for all of it.
  void on_host(ConstArrayView in,
               ArrayView out,
               const std::optional<StreamRef>& stream,
               const std::function<void(ConstArrayView, ArrayView)>& call);

  // Memory on every rank's GPU that all map. Collective; `shown` is the call's signature. Throws
  // InvalidArgument, on all ranks alike, where a rank cannot.
  std::shared_ptr<DeviceBlock> allocate(std::size_t bytes,
                                        const engine::Signature& shown,
                                        std::string name,
                                        std::optional<Duration> deadline);

  // The same from NVSHMEM's heap. Collective among all PEs of NVSHMEM, so they have to be this
  // communicator's ranks; who calls it first starts NVSHMEM with them.
  std::shared_ptr<DeviceBlock> allocate_from_nvshmem(std::size_t bytes,
                                                     const engine::Signature& shown,
                                                     std::string name,
                                                     std::optional<Duration> deadline);
  // NVSHMEM's team of this communicator's ranks, in their order. Collective when it is first made.
  std::int32_t nvshmem_team(std::optional<Duration> deadline);

  // Whether GPUs of several hosts wait for each other's kernels, whose calls nobody compares
  // before.
  bool meets_other_hosts() const noexcept;

  // Whether the host waits for a word of a GPU, which wakes nobody. Then it looks every kGpuLook.
  bool awaits_gpu() const noexcept;

  // A mark behind what is on the stream.
  std::shared_ptr<call::Operation> mark(StreamRef stream);

  // The GPU of this rank in this communicator; -1 before the first call.
  int device() const noexcept { return device_ ? device_->ordinal() : -1; }
  // The engines that were found, and why others were not; null before the first call.
  const std::vector<std::string>* notes() const noexcept {
    return engines_ ? &engines_->notes() : nullptr;
  }
  // Lets the calls on the GPU end, well or not, until their deadlines. The turn is held.
  void finish() noexcept;
  // For a communicator that nobody uses any more: what messages have told each other is compared.
  // The turn is held.
  void finish_envelopes() noexcept;
  // Whether a call that GPUs carried may have been ended before its end.
  bool was_cut_short() const noexcept { return watch_ && watch_->was_cut_short(); }
  // Gives all back, once what is on the GPU has ended.
  void close() noexcept;

 private:
  struct Launch {
    cuda::Stream stream = nullptr;
    Duration allowed{};
    bool captured = false;
  };

  // Local, and without effects on others: what they throw is a refusal.
  DevicePlan prepare(const call::Request& request, call::CallStorage& storage);
  Launch opened(const call::Request& request);
  void require_device(const call::Request& request);
  int device_of(const call::Request& request) const;
  void check_device(ConstArrayView array, const char* name) const;
  void find_symmetric(DevicePlan& plan) const;
  Launch open(const call::Request& request);
  void require_own_stream(const Launch& how) const;

  void require_streams();
  // Collective where they are the first of their kind.
  void require_engines(const engine::Signature& shown);
  bool connect(engine::DeviceEngine& engine, const engine::Signature& shown);
  // To be called while all do something that they report next, so that all are needed until then:
  // throws where the group has failed.
  std::function<void()> looking();
  void choose(DevicePlan& plan, bool captured);
  std::vector<std::byte> gather(const engine::Signature& shown,
                                std::span<const std::byte> own,
                                std::optional<Duration> deadline = std::nullopt);
  template <typename T>
  std::vector<T> gather_values(const T& own,
                               const engine::Signature& shown,
                               std::optional<Duration> deadline) {
    return engine::gather_values(
        [&](std::span<const std::byte> bytes) { return gather(shown, bytes, deadline); }, own);
  }
  static std::string text_of_refusal(int rank, const std::string& what, std::string_view why_not);
  void tell(const std::string& what,
            const std::string& why_not,
            const engine::Signature& shown,
            std::optional<Duration> allowed);
  std::vector<nvshmem::Facts> gather_nvshmem(std::shared_ptr<nvshmem::Heap>& heap,
                                             const engine::Signature& shown,
                                             std::optional<Duration> allowed);
  nvshmem::Wait wait_for_nvshmem(const engine::Signature& shown, std::optional<Duration> allowed);
  void in_nvshmem(const std::string& what,
                  const engine::Signature& shown,
                  std::optional<Duration> allowed,
                  const std::function<void(const nvshmem::Wait&)>& call);
  void start_nvshmem(nvshmem::Heap& heap,
                     const engine::Signature& shown,
                     std::optional<Duration> allowed);
  void take_back_dropped(nvshmem::Heap& heap,
                         const engine::Signature& shown,
                         std::optional<Duration> allowed);

  enum class Wants : std::uint8_t { kNothing, kWork };
  std::shared_ptr<call::Operation> go(DevicePlan& plan,
                                const Launch& how,
                                call::CallStorage storage,
                                Wants wants = Wants::kNothing);
  std::shared_ptr<DeviceWork> mark_end(const Launch& how);
  std::shared_ptr<call::Operation> with_work(const DevicePlan& plan,
                                       const Launch& how,
                                       std::shared_ptr<call::Operation> operation);
  void launch(DevicePlan& plan, const Launch& how);
  bool is_timed(const engine::DeviceEngine& engine, const Launch& how) const noexcept;
  void put_on_stream(DevicePlan& plan, const Launch& how);
  [[noreturn]] void raise(const DeviceError& error,
                          std::uint64_t sequence = 0,
                          const engine::Signature& signature = {});
  std::vector<Incoming> tell_of_messages(std::span<const Outgoing> outgoing,
                                         std::span<const Incoming> incoming,
                                         const Launch& how);
  // `waits`: the call may end when its messages have.
  Launch put_messages(std::span<const Outgoing> outgoing,
                      std::vector<Incoming>& incoming,
                      const MessageOptions& options,
                      bool waits);
  std::shared_ptr<call::Operation> stage(DevicePlan& plan,
                                         const Launch& how,
                                         call::CallStorage storage,
                                         Wants wants);
  call::Plan host_plan(const DevicePlan& plan, const StagedCall& staged);
  bool stays_in_call(const Launch& how) const noexcept;
  void carry_in_place(DevicePlan& plan, const Launch& how, call::CallStorage storage);
  void receive_in_place(std::span<const Incoming> incoming, const Launch& how);
  void settle_relay(const engine::Signature& shown);
  void enqueue_messages(const std::vector<std::vector<engine::DeviceMessage>>& rounds,
                        std::uint64_t peers,
                        const Launch& how,
                        call::CountedTogether timed);
  void finish_relayed();
  void number(engine::Call& call, std::uint64_t hash, const Launch& how, bool meets);
  void hear_refusal(std::uint64_t sequence);
  void answer(const DeviceWatch::Other& other);
  void await_others(std::uint64_t sequence, Duration allowed, std::function<bool()> follow);
  // Waits where more is under way than streams, and the other ranks, keep up with.
  void keep_pace(std::uint64_t sequence, const Launch& how);
  enum class Meeting : std::uint8_t { kBefore, kAfter };  // what a call has to put on the GPU
  void meet(Meeting meeting, std::uint64_t sequence, const Launch& how);
  void finish_queue();
  void make_room();
  void finish_staged() noexcept;
  void await_last();
  // See StreamTimes.
  void count_streams() noexcept;

  call::Core& owner_;
  DeviceSurroundings& surroundings_;
  std::shared_ptr<const cuda::DeviceContext> device_;
  std::unique_ptr<DeviceEngines> engines_;
  // Carries messages: the same on all ranks from the first call on, so that both ends agree.
  engine::DeviceEngine* messenger_ = nullptr;
  DeviceRelay relay_;
  DeviceEnvelopes envelopes_;
  std::shared_ptr<DeviceWatch> watch_;
  std::shared_ptr<Staging> staging_;
  std::shared_ptr<EventPool> events_;
  std::unique_ptr<StreamOrder> order_;
  std::unique_ptr<StreamTimes> times_;  // null: nobody wants to know them
  bool awaits_word_ = false;  // of a GPU or of another rank, which may wake nobody
  std::optional<std::int32_t> nvshmem_team_;
};

}  // namespace hocket::device
