// One rank of hocket's own, as a benchmark measures it.
#pragma once

namespace hocket::cli::bench {

// Joins the job that `hocket run` started and serves the benchmark that started it. Returns the
// exit code.
int run_worker();

}  // namespace hocket::cli::bench
