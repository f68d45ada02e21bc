// Tracks the ranks of a job while it joins.
#pragma once

#include <memory>
#include <string>

#include "hocket/launch.h"
#include "membership/rendezvous/store/request_store.h"

namespace hocket::joining {

// A resource; one thread. Learns of other ranks' ends and failures, from the store's connection
// until init returns. A base::Lookout calls `look`, so that no wait outlasts a death or failure of
// another rank.
class Attendance {
 public:
  // For a job of one rank.
  Attendance() = default;
  // `serves`: this process serves the store.
  Attendance(std::shared_ptr<rendezvous::MemberStore> store, const LaunchInfo& launch, bool serves);
  Attendance(Attendance&&) noexcept = default;
  Attendance& operator=(Attendance&&) noexcept = default;
  ~Attendance();

  // Throws RendezvousError once a rank has ended or failed, with the reason. Costs a system call.
  void look() const;
  // Call it after another rank broke off a wait: waits a moment for the store to give the reason,
  // and throws that. Returns if no reason came.
  void look_for_reason() const;
  // Tells the others that this rank failed. Never throws. If this rank serves the store, it takes a
  // moment, so that ranks that arrive just then hear of the failure, too.
  void withdraw(const std::string& reason) noexcept;
  // While true, an error of this rank is one that every rank finds by itself, so that `withdraw`
  // tells it to none: they would report it at second hand.
  void set_known_to_all(bool known) noexcept { known_to_all_ = known; }

 private:
  std::shared_ptr<rendezvous::MemberStore> store_;
  bool serves_ = false;
  bool known_to_all_ = false;
  // names the rank that serves the store, in text that goes on with its loss; may be empty
  std::string server_;
};

}  // namespace hocket::joining
