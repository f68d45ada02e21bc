// How other launchers watch the launcher of the first host, which serves the job's store. Until all
// ranks have joined, the end of that launcher ends the job: ranks that join later would find no
// store.
//
//   launcher/news        "joined", from rank 0; "ended" or "failed", from that launcher
//   launcher/listeners   counts the launchers that wait for this news
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "hocket/store.h"
#include "interfaces/cli/fd.h"
#include "interfaces/cli/run/launcher.h"

namespace hocket::cli {

// A resource, with a thread. Its connection also shows the first host that this launcher lives.
// When it closes, this launcher's ranks that have not joined count as ended.
class FirstHost {
 public:
  // `size` is the number of the job's ranks. Throws RendezvousError if the store is gone already.
  FirstHost(const RunOptions& options, const Key& key, const std::string& job, int size);
  ~FirstHost();
  FirstHost(const FirstHost&) = delete;
  FirstHost& operator=(const FirstHost&) = delete;

  // Readable when the first host's launcher has ended before all ranks had joined.
  int fd() const noexcept { return gone_.get(); }
  // Returns the reason, once `fd` is readable.
  const std::string& why() const noexcept { return why_; }

 private:
  void listen() noexcept;

  std::shared_ptr<Store> store_;
  const std::string address_;
  Fd gone_;  // an eventfd, written after `why_`
  std::string why_;
  std::thread thread_;
};

// Tells the other launchers that the first host's has ended. If the ranks have not joined, it waits
// for a moment until all launchers listen.
void tell_end(const RunOptions& options,
              const Key& key,
              const std::string& job,
              bool failed) noexcept;

}  // namespace hocket::cli
