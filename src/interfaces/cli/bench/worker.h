// One rank of hocket, for `hocket bench`.
#pragma once

#include <string>

namespace hocket::cli::bench {

// Options of a rank. A value.
struct WorkerOptions {
  std::string name;      // the name under which the library is shown
  bool on_gpu = false;   // arrays lie in a GPU's memory
  bool by_graph = true;  // on GPUs: calls are captured into graphs, which are replayed
};

// Joins the job that `hocket run` started, and serves the `hocket bench` that started the job.
// Returns the exit code.
int run_worker(const WorkerOptions& options);

}  // namespace hocket::cli::bench
