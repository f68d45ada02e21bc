#include "calls/world/communicator_impl.h"

#include <fmt/format.h>

#include <vector>

#include "calls/device/calls.h"
#include "calls/world/exit_list.h"
#include "calls/world/group_engines.h"
#include "calls/world/world.h"
#include "foundation/base/log.h"
#include "membership/control/succession.h"
#include "membership/failure/caught_reason.h"
#include "monitoring/live/status_board.h"

namespace hocket::world {

using call::CallGuard;
using call::CallStorage;
using call::Membership;
using call::Operation;
using call::Request;
using control::Cause;

namespace {

// Fails a group that this rank could not make. The failure is written to the group's block, so that
// the other ranks see it.
void fail_unmade(WorldImpl& world,
                 const Membership& membership,
                 std::uint64_t block,
                 control::GroupEntry* entry) noexcept {
  const auto reason = failure::reason_of_caught();
  control::HostControl& host = world.host();
  control::GroupControl group(
      host, host.memory.at(block), membership.rank, membership.host_ranks, entry);
  group.fail({.cause = Cause::kNotMade,
              .reporter = membership.rank,
              .culprit = membership.rank,
              .text = failure::text_within_memory(reason.view())});
  host.memory.release(block);
}

// Destroys a communicator without owners. The driver frees GPU memory only when all streams have
// ended, and streams may wait for calls of other communicators.
// Those calls may need the calling thread, which may be the progress thread or hold Python's lock.
// So this thread must not wait for a GPU, and another thread destroys a communicator with a GPU.
// A forked child keeps the communicator, because a thread of the parent may hold a mutex of its
// engines.
void end(CommunicatorImpl* communicator) noexcept {
  if (communicator->world()->forked()) {
    static std::vector<CommunicatorImpl*> kept;
    kept.push_back(communicator);
    return;
  }
  const auto now = [communicator] { delete communicator; };
  if (!communicator->has_device() || !ExitList::instance().run_apart(now, communicator->deadline()))
    now();
}

}  // namespace

std::shared_ptr<CommunicatorImpl> CommunicatorImpl::make(const std::shared_ptr<WorldImpl>& world,
                                                         Membership membership,
                                                         std::uint64_t block) {
  const bool is_member = membership.rank >= 0;
  control::GroupEntry* const entry =
      is_member && membership.spans() ? world->host().groups.find(membership.id()) : nullptr;
  CommunicatorImpl* owner = nullptr;
  try {
    if (is_member && membership.spans() && entry == nullptr) {
      throw Error({.code = ErrorCode::kSystem,
                   .message = fmt::format("there are {} groups between hosts already, as many as "
                                          "there can be; close some",
                                          control::kGroups)});
    }
    owner = new CommunicatorImpl(world, membership, block, entry);
  } catch (...) {
    if (is_member) fail_unmade(*world, membership, block, entry);
    throw;
  }
  // If this throws, the communicator closes, which tells the other ranks.
  std::shared_ptr<CommunicatorImpl> made{owner, end};
  ExitList::instance().add(std::weak_ptr<call::Core>(made));
  return made;
}

CommunicatorImpl::CommunicatorImpl(std::shared_ptr<WorldImpl> world,
                                   Membership members,
                                   std::uint64_t block,
                                   control::GroupEntry* entry)
    : Core(world,
           members,
           members.rank < 0 ? nullptr : world->host().memory.at(block),
           entry,
           world->default_deadline()),
      world_(std::move(world)),
      block_(block),
      entry_(entry) {
  if (rank() < 0) return;
  rebuild_turns_.emplace(group());
  open(make_engines(*world_, membership(), group(), failures, block));
  live::show_group(world_->host().memory, block, rank(), membership().name);
}

CommunicatorImpl::~CommunicatorImpl() {
  try {
    close();
  } catch (const std::exception& error) {  // no caller is left to get the error
    ExitList::instance().report(error.what());
  }
}

// --- Calls --------------------------------------------------------------------------------------

void CommunicatorImpl::run(const Request& request) {
  if (is_in_whole() && !request.is_device()) [[unlikely]]
    return run_part(request);
  const CallGuard guard(*this, request.kind);
  require_usable();
  require_members(request.kind);
  require_limit(request.kind, request.deadline);
  if (AnyPlan* const kept = kept_of(request)) return execute(*kept, request, nullptr);
  CallStorage storage;
  AnyPlan plan = checked(request, storage);
  execute(plan, request, &storage);
  keep(request, std::move(plan));
}

std::shared_ptr<Operation> CommunicatorImpl::start(const Request& request) {
  const CallGuard guard(*this, request.kind);
  require_usable();
  require_members(request.kind);
  require_limit(request.kind, request.deadline);
  if (AnyPlan* const kept = kept_of(request)) return enqueue(*kept, request, {});
  CallStorage storage;
  AnyPlan plan = checked(request, storage);
  auto operation = enqueue(plan, request, std::move(storage));
  keep(request, std::move(plan));
  return operation;
}

AnyPlan CommunicatorImpl::prepare(const Request& request, CallStorage& storage) {
  const CallGuard guard(*this, request.kind);
  require_usable();
  require_limit(request.kind, request.deadline);
  return checked(request, storage);
}

void CommunicatorImpl::run_prepared(AnyPlan& plan, const Request& request) {
  const CallGuard guard(*this, request.kind);
  require_usable();
  require_members(request.kind);
  execute(plan, request, nullptr);
}

std::shared_ptr<Operation> CommunicatorImpl::start_prepared(AnyPlan& plan,
                                                            const Request& request,
                                                            std::shared_ptr<void> keep) {
  const CallGuard guard(*this, request.kind);
  require_usable();
  require_members(request.kind);
  auto operation = enqueue(plan, request, {});
  operation->keep = std::move(keep);
  return operation;
}

AnyPlan CommunicatorImpl::checked(const Request& request, CallStorage& storage) {
  if (request.is_device()) return devices().collectives.checked(request, storage);
  return Core::checked(request, storage, nullptr, std::get_if<call::Plan>(&plans_.likely(request)));
}

void CommunicatorImpl::execute(AnyPlan& plan, const Request& request, CallStorage* storage) {
  if (auto* const here = std::get_if<call::Plan>(&plan)) [[likely]] {
    Core::execute(*here, here->call.signature, request.deadline, storage);
  } else {
    devices().collectives.run(std::get<device::DevicePlan>(plan),
                              request,
                              storage == nullptr ? CallStorage{} : std::move(*storage));
  }
}

std::shared_ptr<Operation> CommunicatorImpl::enqueue(AnyPlan& plan,
                                                     const Request& request,
                                                     CallStorage storage) {
  if (auto* const here = std::get_if<call::Plan>(&plan)) {
    return Core::enqueue(*here, here->call.signature, std::move(storage), request.deadline);
  }
  return devices().collectives.start(
      std::get<device::DevicePlan>(plan), request, std::move(storage));
}

AnyPlan* CommunicatorImpl::kept_of(const Request& request) noexcept {
  AnyPlan* const kept = plans_.find(request);
  if (kept == nullptr || kept->index() == 0) [[likely]]
    return kept;
  return devices_->collectives.is_current(std::get<device::DevicePlan>(*kept)) ? kept : nullptr;
}

// Caches a plan, except for requests with lists of parts, whose values are not compared.
void CommunicatorImpl::keep(const Request& request, AnyPlan plan) noexcept {
  if (engine::is_listed(request.kind)) return;
  if (auto* const of_gpu = std::get_if<device::DevicePlan>(&plan)) of_gpu->block.reset();
  plans_.keep(request, std::move(plan));
}

// --- Its end ------------------------------------------------------------------------------------

void CommunicatorImpl::finish_device_calls() {
  if (!is_open() || forks().forked()) return;
  if (closing.enter() != call::Closing::Entry::kEntered) return;
  if (devices_) {
    devices_->session.finish();
    devices_->messages.finish();
  }
  closing.leave();
  if (devices_) failures.raise_unseen(devices_->session.was_cut_short());
}

void CommunicatorImpl::close() {
  if (forks().forked()) return;
  if (is_open() && reentry.is_in_callback()) reentry.refuse_in_callback();
  if (!closing.begin()) return;
  // A call in another thread may still use the engines. `enter` then makes this close a failure of
  // the group, which ends that call.
  switch (closing.enter()) {
    case call::Closing::Entry::kEntered:
      break;
    case call::Closing::Entry::kInside:
      group().fail(failures.own(Cause::kClosedEarly));
      return;
    case call::Closing::Entry::kStuck:
      base::log(base::LogLevel::kError,
                "a thread does not come out of a call of communicator " + membership().name +
                    ", which was closed; what it uses is left to it");
      return;
  }
  std::exception_ptr untold;
  if (devices_) {
    devices_->session.finish();
    devices_->messages.finish();
  }
  try {
    if (devices_) failures.raise_unseen(devices_->session.was_cut_short());
    closing.compare_last_calls();
  } catch (const Error&) {
    untold = std::current_exception();
  }
  closing.drop_calls(Cause::kClosedEarly);
  // A process that is about to exit does not announce this close. It tells the other ranks its exit
  // status when it exits.
  const bool is_told = !world_->has_left() && !world_->leaves_at_exit();
  if (rank() >= 0 && is_told) control::Succession(group()).close(rank());
  if (devices_) devices_->session.close();
  closing.drop_engines();
  if (rank() >= 0) live::hide_group(world_->host().memory, block_);
  world_->release_group(membership().id(), block_);
  if (entry_ != nullptr) world_->host().doorbells.ring_network();
  closing.leave();
  if (untold) std::rethrow_exception(untold);
}

}  // namespace hocket::world
