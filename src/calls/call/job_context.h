// The process-wide services that a call uses.
#pragma once

#include <memory>
#include <string>

#include "foundation/base/config.h"
#include "foundation/os/segment.h"
#include "membership/control/host/host.h"
#include "monitoring/observe/audit_file.h"
#include "monitoring/observe/trace_file.h"

namespace hocket::failure {
class Witness;
}

namespace hocket::call {

class Core;

// An interface. Any thread may use it.
class JobContext {
 public:
  virtual ~JobContext() = default;
  virtual control::HostControl& host() noexcept = 0;
  virtual failure::Witness& witness() noexcept = 0;
  virtual const os::ForkGuard& forks() const noexcept = 0;
  // True if the user wants the waiting thread to stop. Checks at most every few milliseconds.
  virtual bool interrupted() = 0;
  // True if this rank has left the job.
  virtual bool has_left() const noexcept = 0;
  // True if this rank has left the job, or is about to, because its process ends.
  virtual bool is_ending() const noexcept = 0;
  // Makes the progress thread move the calls of `core` until none is pending.
  virtual void watch(std::shared_ptr<Core> core) = 0;
  // True if the program has seen an error about a lost peer, and needs no second one.
  virtual bool has_told_of_loss() const noexcept = 0;
  virtual void tell_of_loss() noexcept = 0;
  virtual base::WaitTimes wait_times() const noexcept = 0;
  // The folder of flight records; empty: none are written.
  virtual const std::string& dump_directory() const noexcept = 0;
  // This rank's number in the world.
  virtual int world_rank() const noexcept = 0;
  // Null if no trace is written.
  virtual const std::shared_ptr<observe::TraceFile>& trace() const noexcept = 0;
  // Null if there is no audit of all communicators.
  virtual const std::shared_ptr<observe::AuditFile>& audit() const noexcept = 0;
  // Returns the audit of all communicators or, if there is none, this rank's file for communicators
  // that want one. Throws SystemError.
  virtual std::shared_ptr<observe::AuditFile> open_audit() = 0;
};

}  // namespace hocket::call
