// The door of a running job: a store at a known address, where newcomers wait to be admitted.
//
//     newcomer n              store               the members' root
//     add, set card    -->   tickets, card/n
//     wait             <--   call/n         <--   "come", or the reason of a refusal
//     set              -->   ready/n        -->   waits for a short time
//     wait             <--   invitation/n   <--   the address, and the rank to join as
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calls/joining/card.h"
#include "foundation/base/deadline.h"
#include "hocket/launch.h"
#include "hocket/store.h"

namespace hocket::joining {

// A new world: the place where its ranks meet, and the settings that they must share. A value.
struct Invitation {
  int rank = 0;
  int size = 1;
  std::string address;
  std::string job;
  Key key;
  std::string door;
  std::vector<int> newcomers;  // ranks of the newcomers
  std::string engines;         // HOCKET_ENGINES of the members
  std::string algorithm;       // HOCKET_ALGORITHM of the members
};
Bytes to_bytes(const Invitation& invitation);
Invitation to_invitation(std::span<const std::byte> bytes);
LaunchInfo launch_of(const Invitation& invitation);

// The address of a door, and the key for it. A value.
struct DoorAddress {
  std::string address;
  std::optional<Key> key;
  bool trust_network = false;
};

// A resource: the members' side of the door. One thread uses it.
class Door {
 public:
  struct Newcomer {
    std::int64_t ticket;
    std::string host;  // os::host_identity
  };

  // Serves the door, or connects to it if another process serves it. Throws InvalidArgument with
  // the reason if it cannot be opened.
  explicit Door(const DoorAddress& address);

  // Calls newcomers in until `most` are ready or the deadline has passed.
  std::vector<Newcomer> call(std::size_t most, const Build& build, base::Deadline deadline);
  void invite(const Newcomer& newcomer, const Invitation& invitation);

 private:
  std::optional<Newcomer> try_call(std::int64_t ticket, const Build& build);

  std::optional<StoreServer> server_;
  std::shared_ptr<Store> store_;
  std::int64_t next_ticket_ = 1;
  std::vector<std::int64_t> without_card_;
};

// The newcomer's side: waits until a job invites this process. Throws RendezvousError at the
// deadline, and if the job refuses this process.
Invitation wait_at_door(const DoorAddress& door, const Build& build, base::Deadline deadline);

}  // namespace hocket::joining
