// The ranks of a job that are still coming, while it joins.
#pragma once

#include <memory>
#include <string>

#include "hocket/launch.h"
#include "membership/rendezvous/store/request_store.h"

namespace hocket::joining {

// A resource; one thread. One rank's ear for the others from the store on until init returns. A
// base::Lookout calls `look`, so that no wait outlasts a death or a failure of another rank.
class Attendance {
 public:
  // A job of one hears of nobody.
  Attendance() = default;
  Attendance(std::shared_ptr<rendezvous::MemberStore> store, const LaunchInfo& launch);
  Attendance(Attendance&&) noexcept = default;
  Attendance& operator=(Attendance&&) noexcept = default;
  ~Attendance();

  // Throws RendezvousError once a rank has ended or failed, with the reason. Costs a system call.
  void look() const;
  // After a wait that another rank broke off: gives the store a moment to say why, and throws that.
  // Returns where no reason came.
  void look_for_reason() const;
  // Tells the others that this rank failed. Never throws. Takes a moment where this rank serves the
  // store, so that others who come to it just then hear of the failure too.
  void withdraw(const std::string& reason) noexcept;

 private:
  std::shared_ptr<rendezvous::MemberStore> store_;
  bool serves_ = false;
  std::string server_;  // who serves the store, in words that go on with its loss; may be empty
};

}  // namespace hocket::joining
