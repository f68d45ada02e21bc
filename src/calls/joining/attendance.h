// Tracks the ranks of a job while it joins.
#pragma once

#include <memory>
#include <string>

#include "hocket/launch.h"
#include "membership/rendezvous/store/request_store.h"

namespace hocket::joining {

// A resource, used by one thread. From the connection to the store until init returns, it learns of
// other ranks' ends and failures. A base::Lookout calls `look`, so that no wait outlasts a death or
// failure of another rank.
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
  // Call it when another rank has broken off a wait. Waits a moment for the store to report the
  // reason, and throws it. Returns if no reason came.
  void look_for_reason() const;
  // Tells the other ranks that this rank failed. Never throws. If this rank serves the store, it
  // waits a moment, so that ranks that are just arriving hear of the failure, too.
  void withdraw(const std::string& reason) noexcept;
  // While true, every rank finds this rank's errors by itself, so `withdraw` tells them to no one.
  void set_known_to_all(bool known) noexcept { known_to_all_ = known; }

 private:
  std::shared_ptr<rendezvous::MemberStore> store_;
  bool serves_ = false;
  bool known_to_all_ = false;
  // the start of a text about the loss of the store; it names the serving rank, or is empty
  std::string server_;
};

}  // namespace hocket::joining
