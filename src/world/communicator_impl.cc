#include "world/communicator_impl.h"

#include <fmt/format.h>

#include "base/log.h"
#include "world/exit_list.h"
#include "world/group_engines.h"
#include "world/world.h"
#include "control/succession.h"
#include "device/calls.h"
#include "failure/caught.h"
#include "live/desk.h"

namespace hocket::world {

using call::CallGuard;
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
  control::GroupControl group(
      host, host.at(block), membership.rank, membership.host_ranks, entry);
  group.fail({.cause = Cause::kNotMade,
              .reporter = membership.rank,
              .culprit = membership.rank,
              .text = failure::text_within_memory(reason.view())});
  host.release(block);
}

}  // namespace

std::shared_ptr<CommunicatorImpl> CommunicatorImpl::make(const std::shared_ptr<WorldImpl>& world,
                                                         Membership membership,
                                                         std::uint64_t block) {
  const bool is_member = membership.rank >= 0;
  control::GroupEntry* const entry = is_member && membership.spans()
                                         ? world->host().find_group(membership.id())
                                         : nullptr;
  try {
    if (is_member && membership.spans() && entry == nullptr) {
      throw Error({.code = ErrorCode::kSystem,
                   .message = fmt::format("there are {} groups between hosts already, as many as "
                                          "there can be; close some",
                                          control::kGroups)});
    }
    return std::make_shared<CommunicatorImpl>(world, membership, block, entry);
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
  live::sit_down(world_->host(), block, rank(), membership().name);
}

CommunicatorImpl::~CommunicatorImpl() {
  try {
    close();
  } catch (const std::exception& error) {  // nobody is left to be told
    ExitList::instance().report(error.what());
  }
}

void CommunicatorImpl::run(const Request& request) {
  const CallGuard guard(*this);
  require_usable();
  require_members();
  if (request.is_device()) [[unlikely]] {
    devices().run(request);
  } else {
    run_here(request);
  }
}

std::shared_ptr<Operation> CommunicatorImpl::start(const Request& request) {
  const CallGuard guard(*this);
  require_usable();
  require_members();
  return request.is_device() ? devices().start(request) : start_here(request);
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
  if (!begin_closing()) return;
  const Closing how = enter_to_close();
  if (how == Closing::kStuck) {
    base::log(base::LogLevel::kError,
              "a thread does not come out of a call of communicator " + membership().name +
                  ", which was closed; what it uses is left to it");
    return;
  }
  std::exception_ptr untold;
  if (devices_) {
    if (how == Closing::kEntered) {
      devices_->finish();
      devices_->finish_envelopes();
    }
    try {
      raise_untold(devices_->was_cut_short());
    } catch (const Error&) {
      untold = std::current_exception();
    }
  }
  drop_calls(Cause::kClosedEarly);
  if (rank() >= 0 && !world_->has_left()) control::Succession(group()).close(rank());
  if (devices_) devices_->close();
  drop_engines();
  if (rank() >= 0) live::stand_up(world_->host(), block_);
  world_->release_group(membership().id(), block_);
  if (entry_ != nullptr) world_->host().ring_network();
  if (how == Closing::kEntered) leave();
  if (untold) std::rethrow_exception(untold);
}

}  // namespace hocket::world
