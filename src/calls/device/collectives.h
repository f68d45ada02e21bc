// Collectives of arrays in GPUs' memory. They are numbered, recorded and compared like all other
// calls, but enqueued on a stream, where they run by themselves.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "calls/call/core.h"
#include "calls/call/planner.h"
#include "calls/device/launcher.h"
#include "calls/device/plan.h"
#include "calls/device/session.h"
#include "calls/device/streams/staging.h"

namespace hocket::device {

class HostCopies;

// A call that only the host can make, with any number of arrays. A value with views of the caller's
// arrays.
struct Copies {
  std::span<const ConstArrayView> in;
  std::span<const ArrayView> out;
  engine::Signature shown;
  CallOptions options;
  bool wants_work = false;
};
// The plan of a call on copies, and the owner of its data.
struct PlannedOnCopies {
  call::Plan plan;
  std::shared_ptr<void> keep;
};
// Makes the plan from the addresses of the host's copies. The copies of inputs are filled when the
// call begins.
using PlanOnCopies = std::function<PlannedOnCopies(const std::vector<std::byte*>& in,
                                                   const std::vector<std::byte*>& out)>;

// A part of a session. The session and the launcher outlive it. The communicator's turn guards it.
class DeviceCollectives {
 public:
  DeviceCollectives(DeviceSession& session, DeviceLauncher& launcher)
      : session_(session), launcher_(launcher), owner_(session.owner()), job_(session.job()) {}

  // Checks and plans a call. Announces a refusal to the other ranks.
  DevicePlan checked(const call::Request& request, call::CallStorage& storage);
  // Returns whether the plan's facts about symmetric memory are still valid.
  bool is_current(const DevicePlan& plan) const noexcept;
  // Make the call that `request` was planned for, and return when it is on its stream. `storage`
  // holds the offsets that the plan points to, unless the caller keeps them.
  void run(DevicePlan& plan, const call::Request& request, call::CallStorage storage = {});
  std::shared_ptr<call::Operation> start(DevicePlan& plan,
                                         const call::Request& request,
                                         call::CallStorage storage = {});

  // Starts a call that only the host can make, in the order of the stream. Returns when it is
  // enqueued.
  std::shared_ptr<call::Operation> start_on_copies(const Copies& copies, const PlanOnCopies& plan);
  // Copies the arrays of a call that only the host can make, and that waits. If it throws, the
  // caller refuses the call.
  std::unique_ptr<HostCopies> copy_to_host(ConstArrayView in,
                                           ArrayView out,
                                           const std::optional<StreamRef>& stream);

 private:
  using Launch = DeviceLauncher::Launch;

  // Plans a call. It has no effect on other ranks, so `checked` turns an exception into a refusal.
  DevicePlan prepare(const call::Request& request, call::CallStorage& storage);
  void find_symmetric(DevicePlan& plan) const;
  void choose(DevicePlan& plan, bool captured);

  enum class Wants : std::uint8_t { kNothing, kWork };
  std::shared_ptr<call::Operation> go(DevicePlan& plan,
                                      const Launch& how,
                                      call::CallStorage storage,
                                      Wants wants = Wants::kNothing);
  void launch(DevicePlan& plan, const Launch& how);
  void put_on_stream(DevicePlan& plan, const Launch& how);
  std::shared_ptr<call::Operation> stage(DevicePlan& plan,
                                         const Launch& how,
                                         call::CallStorage storage,
                                         Wants wants);
  call::Plan host_plan(const DevicePlan& plan, const StagedCall& staged);
  void carry_in_place(DevicePlan& plan, const Launch& how, call::CallStorage storage);
  void number(engine::Call& call, std::uint64_t hash, const Launch& how, bool meets);
  void hear_refusal(std::uint64_t sequence);
  void answer(const DeviceWatch::Other& other);
  // The time of a meeting: before or after this rank enqueues its part of the call.
  enum class Meeting : std::uint8_t { kBefore, kAfter };
  void meet(Meeting meeting, std::uint64_t sequence, const Launch& how);

  DeviceSession& session_;
  DeviceLauncher& launcher_;
  call::Core& owner_;
  DeviceJobContext& job_;
};

}  // namespace hocket::device
