#include "calls/joining/door.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>
#include <variant>

#include "foundation/base/interrupt.h"
#include "foundation/base/log.h"
#include "foundation/base/poll.h"
#include "foundation/os/machine/host_identity.h"
#include "hocket/error.h"
#include "hocket/object.h"
#include "membership/rendezvous/address.h"
#include "membership/rendezvous/wire/establish.h"

namespace hocket::joining {
namespace {

using base::Deadline;
using std::chrono::milliseconds;

constexpr const char* kJob = "hocket door";
constexpr const char* kCome = "come";
constexpr const char* kGone = "gone";
// Time limit for a newcomer's answer. A newcomer answers at once, unless it is stopped or has died.
constexpr milliseconds kForAnswer{1000};
constexpr milliseconds kForConnection{250};
constexpr milliseconds kForDoor{2000};
constexpr milliseconds kBetweenLooks{2};
// The longest attempt to connect. Within an attempt the retries get rarer, but a door may open at
// any moment. So a new attempt begins soon.
constexpr milliseconds kBetweenAttempts{30};
constexpr std::chrono::seconds kForInvitation{10};

std::string key_of(const char* what, std::int64_t ticket) {
  return fmt::format("{}/{}", what, ticket);
}

Bytes card_of(const Build& build) {
  return encode(Object::list({build.release, build.wire, build.tuning, os::host_identity()}));
}

struct DoorCard {
  Build build;
  std::string host;
};

DoorCard to_door_card(std::span<const std::byte> bytes) {
  const Object card = decode(bytes);
  return {.build = {.release = card[0].as_string(),
                    .wire = card[1].as_integer(),
                    .tuning = card[2].as_string()},
          .host = card[3].as_string()};
}

StoreClientOptions client_options(const DoorAddress& door, Duration timeout) {
  return {.address = door.address,
          .key = door.key,
          .job = kJob,
          .role = StoreRole::kObserver,
          .timeout = timeout,
          .trust_network = door.trust_network};
}

// Serves the door. Returns nothing if another process serves it, or if the address is not of this
// host.
std::optional<StoreServer> serve(const DoorAddress& door) {
  StoreServer::Options options{
      .address = door.address, .key = door.key, .job = kJob, .trust_network = door.trust_network};
  const auto address = rendezvous::parse_address(door.address, "the door's address");
  if (const auto* tcp = std::get_if<os::HostPort>(&address)) {
    options.address = tcp->host;
    options.port = tcp->port;
  }
  try {
    return StoreServer(std::move(options));
  } catch (const SystemError& error) {
    if (error.error_number() == EADDRINUSE || error.error_number() == EADDRNOTAVAIL)
      return std::nullopt;
    throw;
  }
}

}  // namespace

// --- Invitations --------------------------------------------------------------------------------

Bytes to_bytes(const Invitation& invitation) {
  std::vector<Object> newcomers(invitation.newcomers.begin(), invitation.newcomers.end());
  return encode(Object::list({invitation.rank,
                              invitation.size,
                              invitation.address,
                              invitation.job,
                              Object::bytes(invitation.key.bytes()),
                              invitation.door,
                              Object::list(std::move(newcomers)),
                              invitation.engines,
                              invitation.algorithm}));
}

Invitation to_invitation(std::span<const std::byte> bytes) {
  const Object object = decode(bytes);
  Invitation made{.rank = static_cast<int>(object[0].as_integer()),
                  .size = static_cast<int>(object[1].as_integer()),
                  .address = object[2].as_string(),
                  .job = object[3].as_string(),
                  .key = Key(object[4].as_bytes().first<Key::kBytes>()),
                  .door = object[5].as_string(),
                  .engines = object[7].as_string(),
                  .algorithm = object[8].as_string()};
  for (const Object& rank : object[6].items()) {
    made.newcomers.push_back(static_cast<int>(rank.as_integer()));
  }
  return made;
}

LaunchInfo launch_of(const Invitation& invitation) {
  return {.rank = invitation.rank,
          .size = invitation.size,
          .launcher = "admission",
          .store_address = invitation.address,
          .job = invitation.job,
          .key = invitation.key,
          .door = invitation.door,
          .newcomers = invitation.newcomers};
}

// --- The members' side --------------------------------------------------------------------------

Door::Door(const DoorAddress& address) {
  const auto deadline = Deadline::in(kForDoor);
  try {
    while (!store_) {
      server_ = serve(address);
      try {
        store_ = connect_store(client_options(address, kForConnection));
      } catch (const RendezvousError&) {  // the process that served it may have just ended
        if (server_ || deadline.has_passed()) throw;
      }
    }
  } catch (const Error& error) {
    throw InvalidArgument(
        fmt::format("the door at {} cannot be opened: {}; give all ranks another "
                    "HOCKET_DOOR",
                    address.address,
                    error.what()));
  }
}

std::optional<Door::Newcomer> Door::try_call(std::int64_t ticket, const Build& build) {
  const auto bytes = store_->try_get(key_of("card", ticket));
  if (!bytes) {
    without_card_.push_back(ticket);
    return std::nullopt;
  }
  const DoorCard card = to_door_card(*bytes);
  const std::string answer =
      card.build == build
          ? kCome
          : fmt::format(
                "the job is of hocket {} and this process of hocket {}, or another build of "
                "it; install the job's release",
                build.release,
                card.build.release);
  if (store_->compare_and_set(key_of("call", ticket), std::nullopt, as_bytes(answer))) {
    return std::nullopt;  // the newcomer has gone, or other members have called it
  }
  if (answer != kCome) return std::nullopt;
  try {
    store_->get(key_of("ready", ticket), kForAnswer);
  } catch (const RendezvousError&) {
    return std::nullopt;
  }
  return Newcomer{.ticket = ticket, .host = card.host};
}

std::vector<Door::Newcomer> Door::call(std::size_t most, const Build& build, Deadline deadline) {
  std::vector<Newcomer> called;
  const auto is_over = [&] {
    base::throw_if_interrupted("the wait for newcomers");
    std::vector<std::int64_t> tickets = std::exchange(without_card_, {});
    for (const std::int64_t last = store_->add("tickets", 0); next_ticket_ <= last;
         ++next_ticket_) {
      tickets.push_back(next_ticket_);
    }
    for (const std::int64_t ticket : tickets) {
      if (called.size() == most) {
        without_card_.push_back(ticket);
      } else if (auto newcomer = try_call(ticket, build)) {
        called.push_back(*std::move(newcomer));
      }
    }
    return called.size() == most;
  };
  if (most != 0) base::poll_until(is_over, deadline, kBetweenLooks);
  return called;
}

void Door::invite(const Newcomer& newcomer, const Invitation& invitation) {
  store_->set(key_of("invitation", newcomer.ticket), to_bytes(invitation));
}

// --- The newcomer's side ------------------------------------------------------------------------

namespace {

// The outcome of a visit to the door: an invitation or a refusal. If both are empty, the door has
// closed, or the job has gone on without this process.
struct Visit {
  std::optional<Invitation> invitation = {};
  std::string refusal = {};
};

// Logs from time to time why a newcomer still waits. A value for the length of the wait.
class Reminder {
 public:
  explicit Reminder(std::string door) : door_(std::move(door)) {}

  Deadline next() const noexcept { return next_; }
  void look(std::string_view reason) {
    if (!next_.has_passed()) return;
    base::log(base::LogLevel::kWarning,
              fmt::format("still waiting after {} to be taken in at {}: {}; `hocket top` shows the "
                          "jobs of this host",
                          base::in_seconds(waited_),
                          door_,
                          reason));
    next_ = Deadline::in(waited_);  // each interval is twice as long
    waited_ *= 2;
  }

 private:
  std::string door_;
  Duration waited_ = rendezvous::kSilentWait;
  Deadline next_ = Deadline::in(waited_);
};

constexpr const char* kNotCalled = "its members have not called admit, or took in others";

// Waits for the members' call, in intervals between reminders. Returns nothing if the door has
// closed or the time is up.
std::optional<std::string> wait_for_call(Store& store,
                                         std::int64_t ticket,
                                         Reminder& reminder,
                                         Deadline deadline) {
  for (;;) {
    const Deadline until = std::min(deadline, reminder.next());
    try {
      return to_string(store.get(key_of("call", ticket), until.left()));
    } catch (const RendezvousError&) {
      if (!until.has_passed() || deadline.has_passed()) return std::nullopt;
    }
    reminder.look(kNotCalled);
  }
}

Visit visit(Store& store, const Build& build, Reminder& reminder, Deadline deadline) {
  const std::int64_t ticket = store.add("tickets", 1);
  store.set(key_of("card", ticket), card_of(build));
  auto answer = wait_for_call(store, ticket, reminder, deadline);
  if (!answer) {
    if (!deadline.has_passed()) return {};
    const auto before =
        store.compare_and_set(key_of("call", ticket), std::nullopt, as_bytes(kGone));
    if (!before) return {};
    answer = to_string(*before);
  }
  if (*answer != kCome) return {.refusal = *answer};
  store.set(key_of("ready", ticket), {});
  return {.invitation = to_invitation(store.get(key_of("invitation", ticket), kForInvitation))};
}

}  // namespace

Invitation wait_at_door(const DoorAddress& door, const Build& build, Deadline deadline) {
  const Duration allowed = deadline.left();
  std::string reason;
  std::string refusal;
  Reminder reminder(door.address);
  bool is_nobody = true;  // true if the reason is that no job has opened the door
  for (;;) {
    base::throw_if_interrupted(fmt::format("the wait at {}", door.address));
    try {
      const auto attempt = std::min<Duration>(kBetweenAttempts, deadline.left());
      const auto store = connect_store(client_options(door, attempt));
      reason = kNotCalled;
      is_nobody = false;
      Visit made = visit(*store, build, reminder, deadline);
      if (made.invitation) return *std::move(made.invitation);
      refusal = std::move(made.refusal);
    } catch (const rendezvous::Unserved& error) {
      if (reason.empty()) reason = error.what();
    } catch (const RendezvousError& error) {
      if (is_nobody) reason = error.what();
      is_nobody = false;
    }
    if (!refusal.empty()) throw RendezvousError(refusal);
    reminder.look(is_nobody
                      ? "nobody answers there; a job opens its door when its members call admit"
                      : reason);
    if (!deadline.has_passed()) continue;
    throw RendezvousError(fmt::format("no job has taken this process in at {} within {}: {}",
                                      door.address,
                                      base::in_seconds(allowed),
                                      reason));
  }
}

}  // namespace hocket::joining
