// Establishes a client's connection: from an address to a connection that both sides have
// authenticated.
#pragma once

#include <chrono>
#include <memory>

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

// A connection to the store, proved by both sides.
struct Established {
  std::unique_ptr<Channel> channel;
  int server_rank = -1;  // the rank whose process serves; -1: it is no rank
};

// Tries again while no process serves, until the options' timeout. With `stale_timeout`, also while
// an earlier job or epoch is still served there. Throws RendezvousError saying what was refused.
Established establish(const StoreClientOptions& options,
                      Duration stale_timeout = Duration::zero(),
                      OnSilence on_silence = OnSilence::kTryAgain);

// A Store over an established connection.
std::shared_ptr<MemberStore> make_client(Established established,
                                         const StoreClientOptions& options);

}  // namespace hocket::rendezvous
