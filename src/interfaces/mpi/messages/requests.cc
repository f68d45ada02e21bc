// Requests: the calls that wait for requests, test them, and free them.
#include <algorithm>
#include <chrono>
#include <thread>

#include "hocket/error.h"
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/process.h"
#include "mpi_calls.h"

namespace hocket::mpi {

void Pending::end() {
  if (when_received) {
    const auto take = std::exchange(when_received, nullptr);
    const auto received = work.received();
    outcome.cancelled = !received;
    if (received) take(*received, outcome);
  }
  waits = false;
  others.clear();
  if (finish) std::exchange(finish, nullptr)(outcome);
}

bool Pending::test() {
  if (waits && !work.test()) return false;
  if (!std::ranges::all_of(others, [](Work& other) { return other.test(); })) return false;
  wait();
  return true;
}

void Pending::wait() {
  try {
    if (waits) work.wait();
    for (Work& other : others) other.wait();
  } catch (...) {
    waits = false;
    others.clear();
    finish = nullptr;
    when_received = nullptr;
    throw;
  }
  end();
}

namespace {

constexpr auto kNap = std::chrono::microseconds(50);

std::shared_ptr<Request> request_of(MPI_Request handle) {
  auto found = process().requests.share(handle);
  require(found != nullptr, MPI_ERR_REQUEST, "request is no request");
  return found;
}
// Returns the request without a share of it: programs must not free a request that they wait for.
Request& own_request(MPI_Request handle) {
  Request* const found = process().requests.find(handle);
  require(found != nullptr, MPI_ERR_REQUEST, "request is no request");
  return *found;
}

// Returns the outcome of a request that has ended. The request becomes inactive, or is freed.
Outcome take(Request& request, MPI_Request* handle) {
  if (!request.active) return {};  // a persistent request that was not started
  Outcome outcome = request.now.outcome;
  if (request.comm != nullptr) outcome.comm = request.comm->handle;
  if (request.is_general) {
    MPI_Status told{};
    int code = request.query != nullptr ? request.query(request.extra_state, &told) : MPI_SUCCESS;
    outcome = {.source = told.MPI_SOURCE,
               .tag = told.MPI_TAG,
               .code = code,
               .bytes = bytes_in(told),
               .cancelled = is_cancelled(told)};
    if (handle != nullptr && request.drop != nullptr) {
      code = request.drop(request.extra_state);
      if (outcome.code == MPI_SUCCESS) outcome.code = code;
    }
  }
  if (handle == nullptr) return outcome;
  if (request.restart) {
    request.active = false;
    request.now = {};
  } else {
    process().requests.remove(*handle);
    *handle = MPI_REQUEST_NULL;
  }
  return outcome;
}

// Returns the outcome if the request has ended, also by a failure. Absent: it has not.
std::optional<Outcome> try_end(MPI_Request* handle) {
  const auto request = request_of(*handle);
  if (!is_over(*request)) return std::nullopt;
  return take(*request, handle);
}
// Does the same, but the request stays.
std::optional<Outcome> look_at(MPI_Request handle) {
  const auto request = request_of(handle);
  if (!is_over(*request)) return std::nullopt;
  return take(*request, nullptr);
}

Outcome wait_for(MPI_Request* handle) {
  Request& request = own_request(*handle);
  try {
    while (has_missing_partitions(request)) std::this_thread::sleep_for(kNap);
    if (request.active && !request.is_polled()) request.now.wait();
  } catch (...) {
    request.now.outcome.code = code_of_caught();
  }
  while (!is_over(request)) std::this_thread::sleep_for(kNap);
  return take(request, handle);
}

bool is_active(MPI_Request handle) {
  return handle != MPI_REQUEST_NULL && own_request(handle).active;
}

// Sleeps until one of the requests may have ended.
void rest(int count, const MPI_Request* handles) {
  std::vector<Work*> places;
  bool has_polled = false;
  for (int i = 0; i < count; ++i) {
    if (!is_active(handles[i])) continue;
    const auto request = request_of(handles[i]);
    if (is_over(*request)) return;
    Work* place = request->now.waits ? &request->now.work : nullptr;
    for (Work& other : request->now.others) {
      if (place == nullptr || place->test()) place = &other;
    }
    if (place != nullptr) places.push_back(place);
    has_polled = has_polled || place == nullptr;
  }
  if (places.empty()) {
    std::this_thread::sleep_for(kNap);
    return;
  }
  static_cast<void>(wait_some_of(places, has_polled ? Duration(kNap) : kForever));
}

void tell(MPI_Status* statuses, int i, const Outcome& outcome) {
  if (statuses == MPI_STATUSES_IGNORE) return;
  fill(&statuses[i], outcome);
}

void fail_if(const Outcome& outcome) {
  if (outcome.code != MPI_SUCCESS) throw Failure{outcome.code, outcome.comm};
}

// Reports whether a request has ended, and how.
void report(const std::optional<Outcome>& outcome, int* flag, MPI_Status* status) {
  *flag = outcome.has_value();
  if (!outcome) return;
  fill(status, *outcome);
  fail_if(*outcome);
}

// Collects the outcomes of a call on several requests. Errors go to the statuses.
class Several {
 public:
  explicit Several(MPI_Status* statuses) : statuses_(statuses) {}
  void add(int i, const Outcome& outcome) {
    tell(statuses_, i, outcome);
    if (statuses_ != MPI_STATUSES_IGNORE) statuses_[i].MPI_ERROR = outcome.code;
    if (outcome.code != MPI_SUCCESS) failed_ = outcome;
  }
  void end() const {
    if (statuses_ == MPI_STATUSES_IGNORE || failed_.code == MPI_SUCCESS) return fail_if(failed_);
    throw Failure{code_with_text(MPI_ERR_IN_STATUS, text_of(failed_.code)), failed_.comm};
  }

 private:
  MPI_Status* statuses_;
  Outcome failed_;
};

// Ends all requests that are complete, and writes their indices and statuses. Returns their number.
// If the first pass finds any, a second pass looks for requests that became complete meanwhile.
int take_some(int incount, MPI_Request* requests, int* indices, Several& all) {
  int found = 0;
  const auto pass = [&] {
    for (int i = 0; i < incount; ++i) {
      if (!is_active(requests[i])) continue;
      if (const auto outcome = try_end(&requests[i])) {
        all.add(found, *outcome);
        indices[found++] = i;
      }
    }
  };
  pass();
  if (found != 0) pass();
  return found;
}

bool has_active(int count, const MPI_Request* requests) {
  return std::any_of(requests, requests + count, is_active);
}

void check(int count, const MPI_Request* requests) {
  require(count >= 0, MPI_ERR_COUNT, "count is negative");
  require(count == 0 || requests != nullptr, MPI_ERR_ARG, "requests is null");
  for (int i = 0; i < count; ++i) {
    if (requests[i] != MPI_REQUEST_NULL) own_request(requests[i]);
  }
}

// Keeps requests that the program freed before their end, until they have ended.
struct Orphans {
  std::mutex mutex;
  std::vector<std::shared_ptr<Request>> requests;
};
Orphans& orphans() {
  static Orphans& made = *new Orphans();  // NOLINT: it outlives what the program destroys
  return made;
}

// Called when the program has completed a generalized request, and when it has freed it. The later
// of the two calls ends the request.
void let_go(MPI_Request handle, Request& request) {
  if (!request.is_let_go.exchange(true)) return;
  process().requests.remove(handle);
  if (request.drop != nullptr) request.drop(request.extra_state);
}

}  // namespace

bool is_over(Request& request) {
  if (!request.active || request.now.outcome.code != MPI_SUCCESS) return true;
  try {
    if (has_missing_partitions(request)) return false;
    if (request.poll) return request.poll();
    return request.is_general ? request.completed.load() : request.now.test();
  } catch (...) {
    request.now.outcome.code = code_of_caught();
    return true;
  }
}

void wait_for_all_of(const std::shared_ptr<Comm>& comm) {
  std::vector<std::shared_ptr<Request>> all = process().requests.all();
  {
    const std::lock_guard lock(orphans().mutex);
    const auto& freed = orphans().requests;
    all.insert(all.end(), freed.begin(), freed.end());
  }
  for (const auto& request : all) {
    while (request->comm == comm && !is_over(*request)) std::this_thread::sleep_for(kNap);
  }
  flush_sends_of(*comm);
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Wait(MPI_Request* request, MPI_Status* status) {
  if (*request == MPI_REQUEST_NULL) return fill(status, {});
  const Outcome outcome = wait_for(request);
  fill(status, outcome);
  fail_if(outcome);
}
void Test(MPI_Request* request, int* flag, MPI_Status* status) {
  *flag = 1;
  if (*request == MPI_REQUEST_NULL) return fill(status, {});
  report(try_end(request), flag, status);
}

void Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  check(count, requests);
  Several all(statuses);
  for (int i = 0; i < count; ++i) {
    all.add(i, requests[i] == MPI_REQUEST_NULL ? Outcome{} : wait_for(&requests[i]));
  }
  all.end();
}
void Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  check(count, requests);
  *flag = 1;
  for (int i = 0; i < count; ++i) {
    if (is_active(requests[i]) && !is_over(*request_of(requests[i]))) *flag = 0;
  }
  if (*flag) Waitall(count, requests, statuses);
}

void Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  check(count, requests);
  int flag = 0;
  for (;;) {
    Testany(count, requests, index, &flag, status);
    if (flag) return;
    rest(count, requests);
  }
}
void Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  check(count, requests);
  *index = MPI_UNDEFINED;
  *flag = !has_active(count, requests);
  if (*flag) return fill(status, {});
  for (int i = 0; i < count; ++i) {
    if (!is_active(requests[i])) continue;
    if (const auto outcome = try_end(&requests[i])) {
      *index = i;
      return report(outcome, flag, status);
    }
  }
}

void Waitsome(
    int incount, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses) {
  check(incount, requests);
  *outcount = MPI_UNDEFINED;
  if (!has_active(incount, requests)) return;
  Several all(statuses);
  while ((*outcount = take_some(incount, requests, indices, all)) == 0) {
    rest(incount, requests);
  }
  all.end();
}
void Testsome(
    int incount, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses) {
  check(incount, requests);
  *outcount = MPI_UNDEFINED;
  if (!has_active(incount, requests)) return;
  Several all(statuses);
  *outcount = take_some(incount, requests, indices, all);
  all.end();
}

void Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  *flag = 1;
  if (request == MPI_REQUEST_NULL) return fill(status, {});
  report(look_at(request), flag, status);
}
void Request_get_status_all(int count,
                            const MPI_Request* requests,
                            int* flag,
                            MPI_Status* statuses) {
  check(count, requests);
  *flag = 1;
  for (int i = 0; i < count && *flag; ++i) {
    if (is_active(requests[i]) && !is_over(*request_of(requests[i]))) *flag = 0;
  }
  if (!*flag) return;
  Several all(statuses);
  for (int i = 0; i < count; ++i) {
    all.add(i, is_active(requests[i]) ? *look_at(requests[i]) : Outcome{});
  }
  all.end();
}
void Request_get_status_any(
    int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  check(count, requests);
  *index = MPI_UNDEFINED;
  *flag = !has_active(count, requests);
  if (*flag) return fill(status, {});
  for (int i = 0; i < count; ++i) {
    if (!is_active(requests[i])) continue;
    if (const auto outcome = look_at(requests[i])) {
      *index = i;
      return report(outcome, flag, status);
    }
  }
}
void Request_get_status_some(
    int incount, const MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses) {
  check(incount, requests);
  *outcount = MPI_UNDEFINED;
  if (!has_active(incount, requests)) return;
  *outcount = 0;
  Several all(statuses);
  for (int i = 0; i < incount; ++i) {
    if (!is_active(requests[i])) continue;
    if (const auto outcome = look_at(requests[i])) {
      all.add(*outcount, *outcome);
      indices[(*outcount)++] = i;
    }
  }
  all.end();
}

void Start(MPI_Request* request) {
  const auto found = request_of(*request);
  require(static_cast<bool>(found->restart), MPI_ERR_REQUEST, "request is not persistent");
  require(!found->active, MPI_ERR_REQUEST, "request has been started and not completed");
  found->now = found->partitions != nullptr ? start_partitions(*found) : found->restart();
  found->active = true;
}
void Startall(int count, MPI_Request* requests) {
  check(count, requests);
  for (int i = 0; i < count; ++i) Start(&requests[i]);
}

void Request_free(MPI_Request* request) {
  require(*request != MPI_REQUEST_NULL, MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL");
  const auto found = request_of(*request);
  const MPI_Request handle = std::exchange(*request, MPI_REQUEST_NULL);
  if (found->is_general) return let_go(handle, *found);
  process().requests.remove(handle);
  const std::lock_guard lock(orphans().mutex);
  auto& all = orphans().requests;
  std::erase_if(all, [](const auto& orphan) { return is_over(*orphan); });
  if (!is_over(*found)) all.push_back(found);
}

void Cancel(MPI_Request* request) {
  const auto found = request_of(*request);
  if (!found->active) return;
  if (found->is_general) {
    if (found->cancel != nullptr) {
      const int code = found->cancel(found->extra_state, found->completed);
      if (code != MPI_SUCCESS) throw Failure{code};
    }
    return;
  }
  // Only a receive can be cancelled. MPI allows that a send goes on.
  if (!found->now.is_receive) return;
  const std::lock_guard lock(found->comm->starting);
  found->now.work.withdraw();  // `Pending::end` finds out whether it was withdrawn
}
void Test_cancelled(const MPI_Status* status, int* flag) { *flag = is_cancelled(*status); }

void Grequest_start(MPI_Grequest_query_function* query_fn,
                    MPI_Grequest_free_function* free_fn,
                    MPI_Grequest_cancel_function* cancel_fn,
                    void* extra_state,
                    MPI_Request* request) {
  auto made = std::make_shared<Request>();
  made->is_general = true;
  made->query = query_fn;
  made->drop = free_fn;
  made->cancel = cancel_fn;
  made->extra_state = extra_state;
  *request = process().requests.add(std::move(made));
}
void Grequest_complete(MPI_Request request) {
  const auto found = request_of(request);
  require(found->is_general, MPI_ERR_REQUEST, "request is no generalized one");
  found->completed = true;
  let_go(request, *found);
}

// --- Statuses ------------------------------------------------------------------------------------

namespace {
// Returns the packed bytes of a number of basic elements. The last of them may lie within an
// element of the type.
std::int64_t bytes_of_elements(const Datatype& type, std::int64_t count) {
  const std::int64_t each = type.elements_in(type.size()).value_or(0);
  if (each <= 0) return 0;
  std::int64_t bytes = count / each * type.size();
  for (std::int64_t left = count % each, last = bytes + type.size(); left > 0 && bytes < last;) {
    if (type.elements_in(++bytes) == count) break;
  }
  return bytes;
}
}  // namespace
void Status_set_cancelled(MPI_Status* status, int flag) {
  set_bytes(*status, bytes_in(*status), flag != 0);
}
void Status_set_elements(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  const Datatype& type = type_of(datatype);
  const std::int64_t bytes = count == MPI_UNDEFINED ? 0 : bytes_of_elements(type, count);
  set_bytes(*status, static_cast<std::uint64_t>(bytes), is_cancelled(*status));
}
void Status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  Status_set_elements(status, datatype, count);
}
void Status_get_source(const MPI_Status* status, int* source) { *source = status->MPI_SOURCE; }
void Status_get_tag(const MPI_Status* status, int* tag) { *tag = status->MPI_TAG; }
void Status_get_error(const MPI_Status* status, int* error) { *error = status->MPI_ERROR; }
void Status_set_source(MPI_Status* status, int source) { status->MPI_SOURCE = source; }
void Status_set_tag(MPI_Status* status, int tag) { status->MPI_TAG = tag; }
void Status_set_error(MPI_Status* status, int error) { status->MPI_ERROR = error; }

void Get_count(const MPI_Status* status, MPI_Datatype datatype, CountOut count) {
  const std::int64_t size = type_of(datatype).size();
  const auto bytes = static_cast<std::int64_t>(bytes_in(*status));
  if (size == 0) {
    count = bytes == 0 ? 0 : MPI_UNDEFINED;
  } else {
    count = bytes % size == 0 ? bytes / size : MPI_UNDEFINED;
  }
}
void Get_elements(const MPI_Status* status, MPI_Datatype datatype, CountOut count) {
  const auto found = type_of(datatype).elements_in(static_cast<std::int64_t>(bytes_in(*status)));
  count = found ? *found : MPI_UNDEFINED;
}
void Get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  Get_elements(status, datatype, count);
}

}  // namespace hocket::mpi::call
