// Calls on arrays in GPUs' memory. They are numbered, recorded and compared like all other calls,
// but enqueued on a stream, where they run by themselves.
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
#include "calls/device/device_job_context.h"
#include "calls/device/engines.h"
#include "calls/device/envelopes.h"
#include "calls/device/plan.h"
#include "calls/device/relay.h"
#include "calls/device/staging.h"
#include "calls/device/stream_order.h"
#include "calls/device/stream_times.h"
#include "calls/device/watch.h"
#include "calls/device/work.h"
#include "engines/nvshmem/heap.h"
#include "membership/failure/records.h"

namespace hocket::device {

// A call that only the host can make, with any number of arrays. A value with views of the caller's
// arrays.
struct Copies {
  std::span<const ConstArrayView> in;
  std::span<const ArrayView> out;
  engine::Signature shown;
  CallOptions options;
  bool wants_work = false;
};
// The plan of such a call, and the owner of its data.
struct PlannedOnCopies {
  call::Plan plan;
  std::shared_ptr<void> keep;
};
// Makes the plan from the addresses of the host's copies. The copies of inputs are filled when the
// call begins.
using PlanOnCopies = std::function<PlannedOnCopies(const std::vector<std::byte*>& in,
                                                   const std::vector<std::byte*>& out)>;

// A resource, one for each communicator that has made a call on GPUs. The communicator's turn
// guards it.
class DeviceCalls {
 public:
  DeviceCalls(call::Core& owner, DeviceJobContext& job)
      : owner_(owner), job_(job), relay_(owner), envelopes_(owner) {}
  ~DeviceCalls();

  // Checks and plans a call. Announces a refusal to the other ranks.
  DevicePlan checked(const call::Request& request, call::CallStorage& storage);
  // Returns whether the plan's facts about symmetric memory are still valid.
  bool is_current(const DevicePlan& plan) const noexcept;
  // Make the call that `request` was planned for, and return when it is on its stream. `storage`
  // belongs to the plan if nobody else keeps it.
  void run(DevicePlan& plan, const call::Request& request, call::CallStorage storage = {});
  std::shared_ptr<call::Operation> start(DevicePlan& plan,
                                         const call::Request& request,
                                         call::CallStorage storage = {});

  // Must be called when a stream has passed a call. It throws nothing, but makes failures of the
  // call known.
  void look_at_result() noexcept {
    if (watch_) watch_->look_at_result();
  }

  // Enqueues messages on the stream; they make progress together. If a source is any rank, waits on
  // the host for the first sender. Returns the source of the first such message.
  int exchange(std::span<const Outgoing> outgoing,
               std::span<const Incoming> incoming,
               const MessageOptions& options);
  std::shared_ptr<call::Operation> start_exchange(std::span<const Outgoing> outgoing,
                                                  std::span<const Incoming> incoming,
                                                  const MessageOptions& options);

  // Starts a call that only the host can make, in the order of the stream. Returns when it is
  // enqueued.
  std::shared_ptr<call::Operation> start_on_copies(const Copies& copies, const PlanOnCopies& plan);

  // Makes a call that only the host can make, on copies of the arrays, and waits until it is
  // complete.
  void on_host(ConstArrayView in,
               ArrayView out,
               const std::optional<StreamRef>& stream,
               const std::function<void(ConstArrayView, ArrayView)>& call);

  // Allocates memory on every rank's GPU, which all ranks map. Collective; `shown` is the call's
  // signature. Throws InvalidArgument on all ranks if one rank fails.
  std::shared_ptr<DeviceBlock> allocate(std::size_t bytes,
                                        const engine::Signature& shown,
                                        std::string name,
                                        std::optional<Duration> deadline);

  // Does the same from NVSHMEM's heap. It is collective among all PEs of NVSHMEM, which must be
  // this communicator's ranks. The first call starts NVSHMEM with them.
  std::shared_ptr<DeviceBlock> allocate_from_nvshmem(std::size_t bytes,
                                                     const engine::Signature& shown,
                                                     std::string name,
                                                     std::optional<Duration> deadline);
  // Returns NVSHMEM's team of this communicator's ranks, in their order. The first call is
  // collective.
  std::int32_t nvshmem_team(std::optional<Duration> deadline);

  // Returns whether kernels on several hosts wait for each other. Their calls are not compared in
  // advance.
  bool meets_other_hosts() const noexcept;

  // Returns whether the host waits for a word from a GPU, which wakes no thread. Then it polls
  // every kGpuLook.
  bool awaits_gpu() const noexcept;

  // Puts a mark behind the current work of the stream.
  std::shared_ptr<call::Operation> mark(StreamRef stream);

  // Returns the GPU of this rank in this communicator. -1 before the first call.
  int device() const noexcept { return device_ ? device_->ordinal() : -1; }
  // Returns the available engines, and why others are missing. Null before the first call.
  const std::vector<std::string>* notes() const noexcept {
    return engines_ ? &engines_->notes() : nullptr;
  }
  // Waits until the calls on the GPU have ended or reached their deadlines. The caller holds the
  // turn.
  void finish() noexcept;
  // Compares the envelopes of messages, for a communicator that is no longer used. The caller holds
  // the turn.
  void finish_envelopes() noexcept;
  // Returns whether a call on GPUs may have been aborted.
  bool was_cut_short() const noexcept { return watch_ && watch_->was_cut_short(); }
  // Releases everything when the work on the GPU has ended.
  void close() noexcept;

 private:
  struct Launch {
    cuda::Stream stream = nullptr;
    Duration allowed{};
    bool captured = false;
  };

  // Local and without effects on other ranks, so an exception becomes a refusal.
  DevicePlan prepare(const call::Request& request, call::CallStorage& storage);
  Launch opened(const call::Request& request);
  void require_device(const call::Request& request);
  int device_of(const call::Request& request) const;
  void check_device(ConstArrayView array, const char* name) const;
  void find_symmetric(DevicePlan& plan) const;
  Launch open(const call::Request& request);
  void require_own_stream(const Launch& how) const;

  void require_streams();
  // Collective if they are the first of their kind.
  void require_engines(const engine::Signature& shown);
  bool connect(engine::DeviceEngine& engine, const engine::Signature& shown);
  // Returns a function for waits in which all ranks are needed until they report their result. It
  // throws if the group has failed.
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
  // `waits`: the call may end when its messages have ended.
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
  // Waits if more work is in progress than the streams and the other ranks can hold.
  void keep_pace(std::uint64_t sequence, const Launch& how);
  enum class Meeting : std::uint8_t { kBefore, kAfter };  // its part is not enqueued yet, or is
  void meet(Meeting meeting, std::uint64_t sequence, const Launch& how);
  void finish_queue();
  void make_room();
  void finish_staged() noexcept;
  void await_last();
  // See StreamTimes.
  void count_streams() noexcept;

  call::Core& owner_;
  DeviceJobContext& job_;
  std::shared_ptr<const cuda::DeviceContext> device_;
  std::unique_ptr<DeviceEngines> engines_;
  // The engine that carries messages. It is equal on all ranks from the first call on, so both ends
  // use it.
  engine::DeviceEngine* messenger_ = nullptr;
  DeviceRelay relay_;
  DeviceEnvelopes envelopes_;
  std::shared_ptr<DeviceWatch> watch_;
  std::shared_ptr<Staging> staging_;
  std::shared_ptr<EventPool> events_;
  std::unique_ptr<StreamOrder> order_;
  std::unique_ptr<StreamTimes> times_;  // null: times are not recorded
  bool awaits_word_ = false;            // of a GPU or of another rank, which may not wake this one
  std::optional<std::int32_t> nvshmem_team_;
};

}  // namespace hocket::device
