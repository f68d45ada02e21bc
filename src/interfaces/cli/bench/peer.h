// One rank of a measured library: serves the command's requests, one after the other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interfaces/cli/bench/case.h"
#include "interfaces/cli/bench/data.h"

namespace hocket::cli::bench {

// A value: a case with its arrays, ready to be called. `calls(n)` makes n calls, one after the
// other, and returns when the last has finished on this rank.
struct Bound {
  Arrays arrays;
  std::function<void(long)> calls;
  std::vector<std::shared_ptr<void>> owners;  // of the arrays
  // If the calls use arrays on a GPU, `upload` copies the host's arrays to them, and `download`
  // copies them back.
  std::function<void()> upload = [] {};
  std::function<void()> download = [] {};
};

// A communication library as a benchmark sees it. One thread. Failures are exceptions.
class Library {
 public:
  virtual ~Library() = default;
  virtual JobRank job_rank() const = 0;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  // Returns the reason why the library cannot do `subject`, the same on all ranks. Absent: it can.
  virtual std::optional<std::string> refusal(const Case& subject) const = 0;
  virtual Bound bind(const Case& subject) = 0;
  virtual void barrier() = 0;
};

// Returns page-aligned memory of this process, at least one element long.
std::shared_ptr<void> ordinary_memory(std::size_t bytes);

// Gives `bound` ordinary arrays of the shape that `subject` has on this rank.
void bind_ordinary_arrays(Bound& bound, const Case& subject, JobRank self);

// Answers the command's requests until the command closes the connection. Returns the process's
// exit code. Prints errors on stderr, which the command collects.
int serve(Library& library);

}  // namespace hocket::cli::bench
