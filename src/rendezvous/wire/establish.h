// A client's way from an address to a connection on which both sides have proved themselves.
#pragma once

#include <chrono>
#include <memory>

#include "hocket/store.h"
#include "rendezvous/store/request_store.h"
#include "rendezvous/wire/channel.h"

namespace hocket::rendezvous {

// How long whoever joins waits before it says what for.
inline constexpr Duration kSilentWait = std::chrono::seconds(10);

// Tries again while nobody serves, until the options' timeout. With `stale_timeout`, also while an
// earlier job or epoch is still served there. Throws RendezvousError saying what was refused.
std::unique_ptr<Channel> establish(const StoreClientOptions& options,
                                   Duration stale_timeout = Duration::zero());

// A Store over an established connection.
std::shared_ptr<MemberStore> make_client(std::unique_ptr<Channel> channel,
                                         const StoreClientOptions& options);

}  // namespace hocket::rendezvous
