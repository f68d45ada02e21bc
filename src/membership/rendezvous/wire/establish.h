// Establishes a client's connection: from an address to a connection that both sides have
// authenticated.
#pragma once

#include <chrono>
#include <memory>

#include "hocket/error.h"
#include "hocket/store.h"
#include "membership/rendezvous/store/request_store.h"
#include "membership/rendezvous/wire/channel.h"

namespace hocket::rendezvous {

// Time that a joining rank waits before it reports the reason.
inline constexpr Duration kSilentWait = std::chrono::seconds(10);

// The reaction to a program that accepts connections at the address and sends nothing.
enum class OnSilence {
  kTryAgain,  // it may be a store that is stopped, or whose place a store takes
  kGiveUp,    // this rank was to serve there, and the address is taken
};

// Another job of the user meets at the address.
class OtherJob : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

// No process serves at the address.
class Unserved : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

// Time that another job at the address may take to leave it.
inline constexpr Duration kForOtherJob = std::chrono::seconds(1);

// How a client asks for its connection, besides its options. A value.
struct Approach {
  Duration stale_timeout = Duration::zero();  // how long an earlier job or epoch may be served
  OnSilence on_silence = OnSilence::kTryAgain;
  // The job's name tells it from the user's other jobs at the same address.
  bool is_named = true;
};

// A connection to the store, proved by both sides.
struct Established {
  std::unique_ptr<Channel> channel;
  int server_rank = -1;  // the rank whose process serves; -1: it is no rank
};

// Tries again while no process serves, until the options' timeout. With a `stale_timeout`, also
// while an earlier job or epoch is still served there. Throws RendezvousError saying what was
// refused, OtherJob if that was for another job, and Unserved if nobody answered.
Established establish(const StoreClientOptions& options, const Approach& approach = {});

// A Store over an established connection.
std::shared_ptr<MemberStore> make_client(Established established,
                                         const StoreClientOptions& options);

}  // namespace hocket::rendezvous
