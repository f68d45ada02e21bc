// What a call needs of the process that it is made in.
#pragma once

#include <memory>
#include <string>

#include "foundation/os/segment.h"
#include "membership/control/host.h"
#include "monitoring/observe/audit_file.h"
#include "monitoring/observe/trace_file.h"

namespace hocket::failure {
class Witness;
}

namespace hocket::call {

class Core;

// Any thread.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual control::HostControl& host() noexcept = 0;
  virtual failure::Witness& witness() noexcept = 0;
  virtual const os::ForkGuard& forks() const noexcept = 0;
  // Whether the user wants the waiting thread to stop; asks at most every few milliseconds.
  virtual bool interrupted() = 0;
  // Whether this rank has said goodbye to the others.
  virtual bool has_left() const noexcept = 0;
  // Has the calls of `core` moved until none is under way, whoever waits or does not.
  virtual void watch(std::shared_ptr<Core> core) = 0;
  // Whether the program has been told that a peer was lost: it need not be told again.
  virtual bool has_told_of_loss() const noexcept = 0;
  virtual void tell_of_loss() noexcept = 0;
  // After how long a wait says who has not come; kForever: it says nothing.
  virtual Duration warn_after() const noexcept = 0;
  // Where flight records go; empty: nowhere.
  virtual const std::string& dump_directory() const noexcept = 0;
  // This process's number among all.
  virtual int world_rank() const noexcept = 0;
  // Null where no trace is written.
  virtual const std::shared_ptr<observe::TraceFile>& trace() const noexcept = 0;
  // Null where no audit is kept of all communicators.
  virtual const std::shared_ptr<observe::AuditFile>& audit() const noexcept = 0;
  // That one, or where there is none, this rank's for the communicators that want one. Throws
  // SystemError.
  virtual std::shared_ptr<observe::AuditFile> open_audit() = 0;
};

}  // namespace hocket::call
