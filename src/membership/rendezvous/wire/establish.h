// Establishes a client's connection: makes a connection to an address, in which both sides have
// authenticated each other.
#pragma once

#include <chrono>
#include <memory>

#include "hocket/error.h"
#include "hocket/store.h"
#include "membership/rendezvous/store/request_store.h"
#include "membership/rendezvous/wire/channel.h"

namespace hocket::rendezvous {

// The time after which a rank that waits for the store logs what it waits for. It also limits one
// attempt.
inline constexpr Duration kSilentWait = std::chrono::seconds(10);

// The reaction to a program that accepts connections at the address, but sends nothing.
enum class OnSilence {
  kTryAgain,  // it may be a stopped store, or a store may replace it
  kGiveUp,    // this rank should serve there, but the address is taken
};

// Thrown if another job of the user meets at the address.
class OtherJob : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

// Thrown if no process serves at the address.
class Unserved : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

// The time for which another job may still use the address.
inline constexpr Duration kForOtherJob = std::chrono::seconds(1);

// How a client asks for its connection, in addition to its options. A value.
struct Approach {
  Duration stale_timeout = Duration::zero();  // an earlier job or epoch may be served for this long
  OnSilence on_silence = OnSilence::kTryAgain;
  // True: the job's name distinguishes it from the user's other jobs at the same address.
  bool is_named = true;
};

// A connection to the store in which both sides have proved that they know the key.
struct Established {
  std::unique_ptr<Channel> channel;
  int server_rank = -1;  // the rank that serves the store; -1: no rank does
};

// Connects to the store. While no process serves, it tries again until the options' timeout. With a
// `stale_timeout`, it also tries again while an earlier job or epoch is served. Throws
// RendezvousError with the reason of a refusal, OtherJob if another job meets there, and Unserved
// if no process answered.
Established establish(const StoreClientOptions& options, const Approach& approach = {});

// Makes a Store over an established connection.
std::shared_ptr<MemberStore> make_client(Established established,
                                         const StoreClientOptions& options);

}  // namespace hocket::rendezvous
