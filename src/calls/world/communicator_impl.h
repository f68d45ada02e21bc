// The implementation of a Communicator: its calls (call::Core), calls on GPUs, and its making,
// closing and rebuilding.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "calls/call/core.h"
#include "calls/device/plan.h"
#include "calls/world/plan_cache.h"
#include "hocket/communicator.h"
#include "membership/control/group.h"
#include "membership/control/rebuild_turns.h"

namespace hocket::device {
struct DeviceCalls;
struct Copies;
class HostCopies;
struct PlannedOnCopies;
using PlanOnCopies = std::function<PlannedOnCopies(const std::vector<std::byte*>& in,
                                                   const std::vector<std::byte*>& out)>;
}  // namespace hocket::device

namespace hocket::world {

class WorldImpl;

// The checked plan of a collective that is about to be made. A value.
using AnyPlan = std::variant<call::Plan, device::DevicePlan>;

// A resource, shared by its Communicator and the operations in progress.
class CommunicatorImpl final : public call::Core {
 public:
  // `block` is the offset of the group's memory on this host, for members. If this rank cannot make
  // its part, for lack of memory, the group fails for all members.
  static std::shared_ptr<CommunicatorImpl> make(const std::shared_ptr<WorldImpl>& world,
                                                call::Membership membership,
                                                std::uint64_t block);
  // Called by `make`. `entry` is the group's entry in the network's list; null on one host.
  CommunicatorImpl(std::shared_ptr<WorldImpl> world,
                   call::Membership membership,
                   std::uint64_t block,
                   control::GroupEntry* entry);
  ~CommunicatorImpl() override;

  const std::shared_ptr<WorldImpl>& world() const noexcept { return world_; }

  // Make a collective, on arrays in host memory or on a GPU's stream.
  void run(const call::Request& request);
  std::shared_ptr<call::Operation> start(const call::Request& request);

  // Make a collective in two steps. `prepare` checks and plans it. `run_prepared` or
  // `start_prepared` then only numbers, records and starts it. If `prepare` refuses, it announces a
  // refusal of the call, because the other ranks make the call. `keep` lives until the call has
  // ended.
  AnyPlan prepare(const call::Request& request, call::CallStorage& storage);
  void run_prepared(AnyPlan& plan, const call::Request& request);
  std::shared_ptr<call::Operation> start_prepared(AnyPlan& plan,
                                                  const call::Request& request,
                                                  std::shared_ptr<void> keep);

  // --- Messages ---------------------------------------------------------------------------------

  // Checks a message's arguments, and returns its envelope.
  engine::Envelope envelope_of(int peer,
                               bool sends,
                               ConstArrayView array,
                               const MessageOptions& options) const;
  // Returns a number for the rest of a long object that this rank sends. The caller has the turn.
  std::uint32_t next_object() noexcept { return ++objects_sent_; }

  // --- Calls of GPUs ----------------------------------------------------------------------------

  // Returns the calls on GPUs, and makes that object at the first use. The caller has the turn.
  device::DeviceCalls& devices();
  // True if there has been a call on GPUs.
  bool has_device() const noexcept;
  // Starts a call that only the host can make, on copies of GPUs' arrays: see DeviceCollectives.
  std::shared_ptr<call::Operation> start_on_copies(const device::Copies& copies,
                                                   const device::PlanOnCopies& plan);
  // Copies GPUs' arrays to the host for such a call, which then waits. Takes the turn. If it
  // throws, the caller refuses the call.
  std::unique_ptr<device::HostCopies> copy_to_host(ConstArrayView in,
                                                   ArrayView out,
                                                   const std::optional<StreamRef>& stream);
  std::shared_ptr<call::Operation> mark_stream(StreamRef stream);

  // --- Its end ----------------------------------------------------------------------------------

  // Makes a communicator of the ranks that go on; see Communicator::rebuild.
  std::shared_ptr<CommunicatorImpl> rebuild(const RebuildOptions& options);
  [[noreturn]] void refuse_rebuild(const std::string& reason);
  // Waits until calls on GPUs have ended or reached their deadlines, and releases everything.
  // Throws a failure of these, or a mismatch of the last calls, that no caller has seen.
  void close();
  void finish_device_calls() override;

  // --- Groups -----------------------------------------------------------------------------------

  // Number of groups made from this communicator, equal on all ranks. It is part of their names.
  int groups() const noexcept { return groups_; }
  void count_group() noexcept { ++groups_; }
  // Made at the first use, and kept even if closed, because programs hold references to them.
  std::unique_ptr<Communicator> intra_node;
  std::unique_ptr<Communicator> inter_node;

 private:
  // Checks and plans a call. The caller has the turn. `storage` is for a plan that is not cached;
  // null: the plan is cached.
  AnyPlan checked(const call::Request& request, call::CallStorage& storage);
  void execute(AnyPlan& plan, const call::Request& request, call::CallStorage* storage);
  std::shared_ptr<call::Operation> enqueue(AnyPlan& plan,
                                           const call::Request& request,
                                           call::CallStorage storage);
  AnyPlan* kept_of(const call::Request& request) noexcept;
  void keep(const call::Request& request, AnyPlan plan) noexcept;

  bool awaits_gpu() const noexcept override;
  void look_at_device_result() noexcept override;
  bool refuses_too_late() const noexcept override;

  const std::shared_ptr<WorldImpl> world_;
  const std::uint64_t block_;
  control::GroupEntry* const entry_;
  std::optional<control::RebuildTurns> rebuild_turns_;  // absent in a process that is no member
  bool rebuilt_ = false;  // true once `rebuild` has returned its successor
  int groups_ = 0;
  std::uint32_t objects_sent_ = 0;
  std::unique_ptr<device::DeviceCalls> devices_;
  PlanCache<AnyPlan> plans_;
};

}  // namespace hocket::world
