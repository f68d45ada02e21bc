// Prepared calls, and waits for several works.
#include <algorithm>
#include <vector>

#include "interfaces/capi/options.h"

using hocket::Work;
using hocket::capi::guarded;
using hocket::capi::of;
using hocket::capi::place;
using hocket::capi::Refusal;

namespace {

std::vector<Work*> works_of(hocket_work* const* works, std::size_t count) {
  check_list(Refusal(), works, count, sizeof *works, "works", "count");
  std::vector<Work*> found;
  found.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    found.push_back(&of(works[i], ("works[" + std::to_string(i) + "]").c_str()).work);
  }
  return found;
}

}  // namespace

int hocket_prepared_call(hocket_prepared* prepared) {
  return guarded("hocket_prepared_call", [&] { of(prepared, "prepared").prepared(); });
}
int hocket_prepared_start(hocket_prepared* prepared, hocket_work** work) {
  return guarded("hocket_prepared_start", [&] {
    hocket_prepared& call = of(prepared, "prepared");
    start_work(Refusal(call.comm), work, [&] { return call.prepared.start(); });
  });
}
void hocket_prepared_free(hocket_prepared** prepared) { hocket::capi::release(prepared); }

int hocket_wait_some(
    hocket_work* const* works, size_t count, int64_t timeout_ns, size_t* indices, size_t* found) {
  return guarded("hocket_wait_some", [&] {
    size_t* const places = &place(indices, "indices");
    size_t& number = place(found, "found");
    const std::vector<Work*> all = works_of(works, count);
    const auto ended = hocket::wait_some_of(all, hocket::capi::timeout(timeout_ns));
    std::ranges::copy(ended, places);
    number = ended.size();
  });
}
int hocket_wait_any(
    hocket_work* const* works, size_t count, int64_t timeout_ns, size_t* index, int* done) {
  return guarded("hocket_wait_any", [&] {
    size_t& first = place(index, "index");
    int& has_ended = place(done, "done");
    const std::vector<Work*> all = works_of(works, count);
    const auto ended = hocket::wait_any_of(all, hocket::capi::timeout(timeout_ns));
    if (ended) first = *ended;
    has_ended = ended ? 1 : 0;
  });
}
int hocket_wait_all(hocket_work* const* works, size_t count, int64_t timeout_ns, int* done) {
  return guarded("hocket_wait_all", [&] {
    int& have_ended = place(done, "done");
    const std::vector<Work*> all = works_of(works, count);
    have_ended = hocket::wait_all_of(all, hocket::capi::timeout(timeout_ns)) ? 1 : 0;
  });
}
