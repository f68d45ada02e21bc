// One rank of hocket, as a benchmark measures it.
#pragma once

#include <string>

namespace hocket::cli::bench {

// Options of a rank. A value.
struct WorkerOptions {
  std::string name;      // as which library it is shown
  bool on_gpu = false;   // arrays lie in a GPU's memory
  bool by_graph = true;  // there: calls are captured, and replayed
};

// Joins the job that `hocket run` started and serves the benchmark that started it. Returns the
// exit code.
int run_worker(const WorkerOptions& options);

}  // namespace hocket::cli::bench
