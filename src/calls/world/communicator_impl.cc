#include "calls/world/communicator_impl.h"

#include <fmt/format.h>

#include "calls/device/calls.h"
#include "calls/world/exit_list.h"
#include "calls/world/group_engines.h"
#include "calls/world/world.h"
#include "foundation/base/log.h"
#include "membership/control/succession.h"
#include "membership/failure/caught.h"
#include "monitoring/live/status_board.h"

namespace hocket::world {

using call::CallGuard;
using call::CallStorage;
using call::Membership;
using call::Operation;
using call::Request;
using control::Cause;

namespace {

// Tells the others of a group, in whose block it is written, that this rank is not in it.
void fail_unmade(WorldImpl& world,
                 const Membership& membership,
                 std::uint64_t block,
                 control::GroupEntry* entry) noexcept {
  const auto reason = failure::reason_of_caught();
  control::HostControl& host = world.host();
  control::GroupControl group(host, host.at(block), membership.rank, membership.host_ranks, entry);
  group.fail({.cause = Cause::kNotMade,
              .reporter = membership.rank,
              .culprit = membership.rank,
              .text = failure::text_within_memory(reason.view())});
  host.release(block);
}

// Destroys a communicator. The last owner may be the progress thread or a thread with Python's
// lock, which must not wait for a GPU. The driver frees memory when all streams have ended. These
// may wait for calls of other communicators, which those threads move. So another thread does it.
void end(CommunicatorImpl* communicator) noexcept {
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
      is_member && membership.spans() ? world->host().find_group(membership.id()) : nullptr;
  try {
    if (is_member && membership.spans() && entry == nullptr) {
      throw Error({.code = ErrorCode::kSystem,
                   .message = fmt::format("there are {} groups between hosts already, as many as "
                                          "there can be; close some",
                                          control::kGroups)});
    }
    std::shared_ptr<CommunicatorImpl> made{new CommunicatorImpl(world, membership, block, entry),
                                           end};
    ExitList::instance().add(std::weak_ptr<call::Core>(made));
    return made;
  } catch (...) {
    if (is_member) fail_unmade(*world, membership, block, entry);
    throw;
  }
}

CommunicatorImpl::CommunicatorImpl(std::shared_ptr<WorldImpl> world,
                                   Membership members,
                                   std::uint64_t block,
                                   control::GroupEntry* entry)
    : Core(world,
           members,
           members.rank < 0 ? nullptr : world->host().at(block),
           entry,
           world->default_deadline()),
      world_(std::move(world)),
      block_(block),
      entry_(entry) {
  if (rank() < 0) return;
  rebuild_turns_.emplace(group());
  open(make_engines(*world_, membership(), group(), *this, block));
  live::show_group(world_->host(), block, rank(), membership().name);
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
  if (request.is_device()) return devices().checked(request, storage);
  return Core::checked(request, storage, nullptr, std::get_if<call::Plan>(&plans_.likely(request)));
}

void CommunicatorImpl::execute(AnyPlan& plan, const Request& request, CallStorage* storage) {
  if (auto* const here = std::get_if<call::Plan>(&plan)) [[likely]] {
    Core::execute(*here, here->call.signature, request.deadline, storage);
  } else {
    devices().run(std::get<device::DevicePlan>(plan),
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
  return devices().start(std::get<device::DevicePlan>(plan), request, std::move(storage));
}

AnyPlan* CommunicatorImpl::kept_of(const Request& request) noexcept {
  AnyPlan* const kept = plans_.find(request);
  if (kept == nullptr || kept->index() == 0) [[likely]]
    return kept;
  return devices_->is_current(std::get<device::DevicePlan>(*kept)) ? kept : nullptr;
}

// Excludes requests with lists of parts: their values are not compared.
void CommunicatorImpl::keep(const Request& request, AnyPlan plan) noexcept {
  if (engine::is_listed(request.kind)) return;
  if (auto* const of_gpu = std::get_if<device::DevicePlan>(&plan)) of_gpu->block.reset();
  plans_.keep(request, std::move(plan));
}

// --- Its end ------------------------------------------------------------------------------------

void CommunicatorImpl::finish_device_calls() {
  if (!is_open() || forks().forked()) return;
  if (enter_to_close() != Closing::kEntered) return;
  if (devices_) {
    devices_->finish();
    devices_->finish_envelopes();
  }
  leave();
  if (devices_) raise_untold(devices_->was_cut_short());
}

void CommunicatorImpl::close() {
  if (forks().forked()) return;
  if (is_open()) refuse_in_callback();
  if (!begin_closing()) return;
  const Closing how = enter_to_close();
  if (how == Closing::kStuck) {
    base::log(base::LogLevel::kError,
              "a thread does not come out of a call of communicator " + membership().name +
                  ", which was closed; what it uses is left to it");
    return;
  }
  std::exception_ptr untold;
  if (devices_ && how == Closing::kEntered) {
    devices_->finish();
    devices_->finish_envelopes();
  }
  try {
    if (devices_) raise_untold(devices_->was_cut_short());
    if (how == Closing::kEntered) compare_last_calls();
  } catch (const Error&) {
    untold = std::current_exception();
  }
  drop_calls(Cause::kClosedEarly);
  // A process that is about to exit tells the others its status instead, when it does.
  const bool is_told = !world_->has_left() && !world_->leaves_at_exit();
  if (rank() >= 0 && is_told) control::Succession(group()).close(rank());
  if (devices_) devices_->close();
  drop_engines();
  if (rank() >= 0) live::hide_group(world_->host(), block_);
  world_->release_group(membership().id(), block_);
  if (entry_ != nullptr) world_->host().ring_network();
  if (how == Closing::kEntered) leave();
  if (untold) std::rethrow_exception(untold);
}

}  // namespace hocket::world
