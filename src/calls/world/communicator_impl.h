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
class DeviceCalls;
struct Copies;
struct PlannedOnCopies;
using PlanOnCopies = std::function<PlannedOnCopies(const std::vector<std::byte*>& in,
                                                   const std::vector<std::byte*>& out)>;
}  // namespace hocket::device

namespace hocket::world {

class WorldImpl;

// The checked plan of a collective that is about to be made. A value.
using AnyPlan = std::variant<call::Plan, device::DevicePlan>;

// A resource, shared by its Communicator and the operations under way.
class CommunicatorImpl final : public call::Core {
 public:
  // `block` is the offset of the group's memory on this host; members only. If this rank cannot
  // make its part, as memory is short, the group has failed for the others, too.
  static std::shared_ptr<CommunicatorImpl> make(const std::shared_ptr<WorldImpl>& world,
                                                call::Membership membership,
                                                std::uint64_t block);
  // Called by `make`. `entry` is that of a group between hosts.
  CommunicatorImpl(std::shared_ptr<WorldImpl> world,
                   call::Membership membership,
                   std::uint64_t block,
                   control::GroupEntry* entry);
  ~CommunicatorImpl() override;

  const std::shared_ptr<WorldImpl>& world() const noexcept { return world_; }
  using call::Core::is_open;

  // Collectives, of arrays on the host or on a GPU, whose calls are put on a stream.
  void run(const call::Request& request);
  std::shared_ptr<call::Operation> start(const call::Request& request);

  // The same in two parts. If `prepare` refuses, the refusal is announced as if the call had been
  // made, because the others make it. The other two then only number, record and start. `keep`
  // lives until the call has ended.
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
  // A number for the rest of a long object that this rank sends. In the turn.
  std::uint32_t next_object() noexcept { return ++objects_sent_; }

  // --- Calls of GPUs ----------------------------------------------------------------------------
  // In the turn.
  device::DeviceCalls& devices();
  // True if there has been a call on GPUs.
  bool has_device() const noexcept;
  // A call that the host alone can make, on copies: see DeviceCalls.
  std::shared_ptr<call::Operation> start_on_copies(const device::Copies& copies,
                                                   const device::PlanOnCopies& plan);
  std::shared_ptr<call::Operation> mark_stream(StreamRef stream);

  // --- Its end ----------------------------------------------------------------------------------
  // Makes the group of the ranks that go on; see Communicator::rebuild.
  std::shared_ptr<CommunicatorImpl> rebuild(const RebuildOptions& options);
  [[noreturn]] void refuse_rebuild(const std::string& reason);
  // Lets calls on GPUs end, in success or failure, until their deadlines, and releases all. Throws
  // an error of one of them that no caller has seen: see DeviceCalls.
  void close();
  void finish_device_calls() override;

  // --- Groups -----------------------------------------------------------------------------------
  // Number of groups made of this one: part of their names, the same on all ranks.
  int groups() const noexcept { return groups_; }
  void count_group() noexcept { ++groups_; }
  // Kept by the first call, closed or not: programs hold references to them.
  std::unique_ptr<Communicator> intra_node;
  std::unique_ptr<Communicator> inter_node;

 private:
  // In the turn. `storage` holds a plan that is not cached; null: the plan is cached.
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
  std::optional<control::RebuildTurns> rebuild_turns_;  // a member's
  bool rebuilt_ = false;  // the communicator that follows it has been returned
  int groups_ = 0;
  std::uint32_t objects_sent_ = 0;
  std::unique_ptr<device::DeviceCalls> devices_;
  PlanCache<AnyPlan> plans_;
};

}  // namespace hocket::world
