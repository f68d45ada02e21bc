// A runtime context: a program sets it up once, and libraries that work on distributed arrays find
// it, with nothing passed to them.
#include <hocket/hocket.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

namespace library {

// The length of a vector that is spread over the processes. Knows nothing of how they met.
double norm(const std::vector<double>& part) {
  const std::shared_ptr<hocket::Context> context = hocket::Context::current();
  if (context == nullptr) throw std::runtime_error("initialize hocket::Context first");
  double sum = 0;
  for (const double x : part) sum += x * x;
  context->communicator().all_reduce(hocket::scalar(sum));
  return std::sqrt(sum);
}

}  // namespace library

int main() try {
  using std::chrono::seconds;
  // `.device` names this process's GPU; without one arrays lie in host memory.
  const auto context = hocket::Context::initialize({.deadline = seconds(60)});
  const int rank = context->rank();
  const int n = context->size();

  // Ones, as many as the rank's number and one more: 1 + 2 + ... + n in all.
  const std::vector<double> part(static_cast<std::size_t>(rank) + 1, 1.0);
  expect_equal(library::norm(part), std::sqrt(n * (n + 1) / 2.0), "the length");

  // There is one at a time. A second is refused, here and wherever it is tried.
  bool refused = false;
  try {
    hocket::Context::initialize();
  } catch (const hocket::InvalidArgument&) {
    refused = true;
  }
  expect_equal(refused, true, "whether a second context was refused");

  if (rank == 0) {
    std::printf("a context of %d on %s, first engine %s\n",
                n,
                context->device() ? "GPUs" : "the host",
                context->engines().empty() ? "none" : context->engines().front().c_str());
  }

  // Collective: no process leaves while another still needs it.
  hocket::Context::finalize();
  expect_equal(hocket::Context::current() == nullptr, true, "whether the context has gone");
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
