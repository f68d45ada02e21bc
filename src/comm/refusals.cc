// Calls that a rank does not begin. Whatever stands in its way, arguments that are bad or memory
// that is not there, the call takes its number and is announced as refused, so that the others hear
// of it at once instead of waiting, and all stay in step.
#include "comm/refusals.h"

#include <fmt/format.h>

#include <new>

#include "comm/communicator_impl.h"
#include "comm/operation.h"
#include "comm/waiter.h"
#include "comm/world.h"

namespace hocket::comm {

using base::Deadline;
using engine::Kind;

namespace {

// Without memory of its own: it fits into the string itself.
constexpr const char* kOutOfMemory = "has no memory";

}  // namespace

std::string failure_text(std::string_view text) noexcept {
  try {
    return std::string(text);
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
}

namespace {

// For a failure: what the rank did not do, and why.
std::string text_of_caught(std::string_view what) noexcept {
  const auto reason = reason_of_caught();
  try {
    return fmt::format("{}: {}", what, reason.view());
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
}

}  // namespace

base::ShortText<200> reason_of_caught() noexcept {
  base::ShortText<200> text;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    text = "it has no memory left for the call";
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "it has thrown something unknown";
  }
  return text;
}

// Takes memory only where calls are under way, or the others are far behind.
void CommunicatorImpl::announce_refusal(std::uint64_t sequence,
                                        Kind kind,
                                        std::string_view reason) noexcept {
  if (control_->failed()) return;
  try {
    if (bound_) {
      return control_->fail({.code = ErrorCode::kAborted,
                             .reporter = rank(),
                             .culprit = rank(),
                             .sequence = sequence,
                             .signature = {.kind = kind},
                             .text = fmt::format("cannot go on with a call: {}", reason)});
    }
    if (queue_.empty() && control_->may_refuse(sequence)) {
      return publish_refusal(sequence, kind, reason);
    }
    const auto operation =
        std::make_shared<Operation>(shared_from_this(), Deadline::never(), kForever);
    operation->sequence() = sequence;
    operation->shown.kind = kind;
    operation->refusal = reason;
    queue_.push_back(operation);
    advance(false);
    // After the others have read earlier refusals; but never after work under way, which may need
    // what this thread does next.
    Waiter waiter(world_->host());
    const Deadline deadline = Deadline::in(deadline_);
    while (!operation->done() && queue_.front() == operation) {
      const bool look = waiter.pause();
      if (look && deadline.has_passed()) break;
      if (advance(look)) waiter.moved();
    }
    if (!operation->done()) world_->watch(shared_from_this());
  } catch (const std::exception&) {
    control_->fail({.code = ErrorCode::kAborted,
                    .reporter = rank(),
                    .culprit = rank(),
                    .sequence = sequence,
                    .text = kOutOfMemory});
  }
}

void CommunicatorImpl::publish_refusal(std::uint64_t sequence, Kind kind, std::string_view reason) {
  fingerprint_ = fingerprint_after_refusal(sequence);
  control_->refuse(sequence, kind, reason);
  for (const auto& engine : engines_.collectives) engine->skip(sequence);
}

void CommunicatorImpl::refuse(Kind kind, const InvalidArgument& reason) {
  const std::uint64_t sequence = ++sequence_;
  announce_refusal(sequence, kind, reason.what());
  Status status = reason.status();
  status.communicator = membership_.name;
  status.sequence = sequence;
  status.operation = engine::name_of(kind);
  status.rank = rank();
  status.message =
      fmt::format("{} #{} on {}: {}", status.operation, sequence, membership_.name, reason.what());
  throw InvalidArgument(std::move(status));
}

void CommunicatorImpl::refuse_caught(Kind kind) {
  try {
    throw;
  } catch (const InvalidArgument& reason) {
    refuse(kind, reason);
  } catch (...) {
    announce_refusal(++sequence_, kind, reason_of_caught().view());
    throw;
  }
}

void CommunicatorImpl::refuse_next(Kind kind) {
  try {
    throw;
  } catch (const InvalidArgument& reason) {
    const Seat seat(*this);
    require_usable();
    refuse(kind, reason);
  } catch (...) {
    const auto reason = reason_of_caught();
    try {
      const Seat seat(*this);
      require_usable();
      announce_refusal(++sequence_, kind, reason.view());
    } catch (const Error&) {
      // Nobody waits for this rank: the communicator has ended, or another thread is in it.
    }
    throw;
  }
}

void CommunicatorImpl::refuse_call(Kind kind, const std::string& reason) {
  const Seat seat(*this);
  require_usable();
  refuse(kind, InvalidArgument(reason));
}

// What ends a call that has begun, by whatever is no error of the group's so far: the others wait
// for what this rank does not give any more.
void CommunicatorImpl::fail_caught(std::uint64_t sequence) noexcept {
  if (control_->failed()) return;
  try {
    throw;
  } catch (const InvalidArgument&) {
    return;  // a refusal by another rank, which has ended the call on all
  } catch (...) {
  }
  const auto own = control_->find(rank(), sequence);
  control_->fail({.code = ErrorCode::kAborted,
                  .reporter = rank(),
                  .culprit = rank(),
                  .sequence = sequence,
                  .signature = own ? own->signature : engine::Signature{},
                  .text = text_of_caught("cannot go on with a call")});
}

// Tells the others of a group, in whose block it is written, that this rank is not in it.
void CommunicatorImpl::fail_unmade(WorldImpl& world,
                                   const Membership& membership,
                                   std::uint64_t block) noexcept {
  control::HostControl& host = world.host();
  control::GroupEntry* const entry =
      membership.spans() ? host.find_group(membership.id()) : nullptr;
  control::GroupControl control(
      host, host.at(block), membership.rank, membership.host_ranks, entry);
  control.fail({.code = ErrorCode::kAborted,
                .reporter = membership.rank,
                .culprit = membership.rank,
                .text = text_of_caught("could not make its part of the group")});
  host.release(block);
}

}  // namespace hocket::comm
