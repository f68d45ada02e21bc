// Requests: waiting for what has begun, whichever way.
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
    if (const auto received = work.received()) take(*received, outcome);
  }
  waits = false;
  others.clear();
  if (finish) std::exchange(finish, nullptr)(outcome);
}

bool Pending::test() {
  if (waits && !work.test()) return false;
  for (Work& other : others) {
    if (!other.test()) return false;
  }
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

bool is_over(Request& request) {
  if (!request.active) return true;
  if (has_missing_partitions(request)) return false;
  return request.is_general ? request.completed.load() : request.now.test();
}

// The outcome of a request that is over; it becomes inactive, or is freed.
Outcome take(Request& request, MPI_Request* handle, MPI_Status* status) {
  if (!request.active) return {};  // a persistent one that was not started
  Outcome outcome = request.now.outcome;
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
  static_cast<void>(status);
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

// The same where the call failed: the request is over, too.
Outcome take_failed(Request& request, MPI_Request* handle) {
  const int code = code_of_caught();
  request.now.outcome.code = code;
  return take(request, handle, nullptr);
}

// Whether it has ended, and how; one that failed has ended.
std::optional<Outcome> try_end(MPI_Request* handle) {
  const auto request = request_of(*handle);
  try {
    if (!is_over(*request)) return std::nullopt;
  } catch (...) {
    return take_failed(*request, handle);
  }
  return take(*request, handle, nullptr);
}

Outcome wait_for(MPI_Request* handle) {
  const auto request = request_of(*handle);
  try {
    while (has_missing_partitions(*request)) std::this_thread::sleep_for(kNap);
    if (request->active && !request->is_general) request->now.wait();
    while (!is_over(*request)) std::this_thread::sleep_for(kNap);
  } catch (...) {
    return take_failed(*request, handle);
  }
  return take(*request, handle, nullptr);
}

bool is_active(MPI_Request handle) {
  return handle != MPI_REQUEST_NULL && request_of(handle)->active;
}

// Sleeps until one of them may have ended.
void rest(int count, const MPI_Request* handles) {
  std::vector<Work> works;
  std::vector<Work*> places;
  bool has_general = false;
  for (int i = 0; i < count; ++i) {
    if (!is_active(handles[i])) continue;
    const auto request = request_of(handles[i]);
    if (request->is_general) {
      has_general = true;
      continue;
    }
    Work* place = request->now.waits ? &request->now.work : nullptr;
    for (Work& other : request->now.others) {
      if (place == nullptr || place->test()) place = &other;
    }
    if (place != nullptr) places.push_back(place);
  }
  if (places.empty()) {
    std::this_thread::sleep_for(kNap);
    return;
  }
  for (Work* place : places) works.push_back(std::move(*place));
  static_cast<void>(wait_some(works, has_general ? Duration(kNap) : kForever));
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(works[i]);
}

void tell(MPI_Status* statuses, int i, const Outcome& outcome) {
  if (statuses == MPI_STATUSES_IGNORE) return;
  fill(&statuses[i], outcome);
}

void fail_if(const Outcome& outcome) {
  if (outcome.code != MPI_SUCCESS) throw Failure{outcome.code};
}

// Errors of several requests are in the statuses.
class Several {
 public:
  explicit Several(MPI_Status* statuses) : statuses_(statuses) {}
  void add(int i, const Outcome& outcome) {
    tell(statuses_, i, outcome);
    if (statuses_ != MPI_STATUSES_IGNORE) statuses_[i].MPI_ERROR = outcome.code;
    if (outcome.code != MPI_SUCCESS) failed_ = outcome.code;
  }
  void end() const {
    if (failed_ == MPI_SUCCESS) return;
    if (statuses_ == MPI_STATUSES_IGNORE) throw Failure{failed_};
    throw Failure{code_with_text(MPI_ERR_IN_STATUS, text_of(failed_))};
  }

 private:
  MPI_Status* statuses_;
  int failed_ = MPI_SUCCESS;
};

// Takes all requests that have ended, into indices and statuses, and returns their number. Those
// that ended during the first pass are found in a second one.
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
    if (requests[i] != MPI_REQUEST_NULL) request_of(requests[i]);
  }
}

}  // namespace
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
  const auto outcome = try_end(request);
  *flag = outcome.has_value();
  if (!outcome) return;
  fill(status, *outcome);
  fail_if(*outcome);
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
    if (!is_active(requests[i])) continue;
    try {
      if (!is_over(*request_of(requests[i]))) *flag = 0;
    } catch (...) {
      request_of(requests[i])->now.outcome.code = code_of_caught();
    }
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
      *flag = 1;
      fill(status, *outcome);
      return fail_if(*outcome);
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
  const auto found = request_of(request);
  *flag = is_over(*found);
  if (*flag) fill(status, take(*found, nullptr, nullptr));
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
  for (int i = 0; i < count && *flag; ++i) {
    tell(statuses,
         i,
         is_active(requests[i]) ? take(*request_of(requests[i]), nullptr, nullptr) : Outcome{});
  }
}
void Request_get_status_any(
    int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  check(count, requests);
  *index = MPI_UNDEFINED;
  *flag = !has_active(count, requests);
  if (*flag) return fill(status, {});
  for (int i = 0; i < count; ++i) {
    if (!is_active(requests[i]) || !is_over(*request_of(requests[i]))) continue;
    *index = i;
    *flag = 1;
    return fill(status, take(*request_of(requests[i]), nullptr, nullptr));
  }
}
void Request_get_status_some(
    int incount, const MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses) {
  check(incount, requests);
  *outcount = MPI_UNDEFINED;
  if (!has_active(incount, requests)) return;
  *outcount = 0;
  for (int i = 0; i < incount; ++i) {
    if (!is_active(requests[i]) || !is_over(*request_of(requests[i]))) continue;
    tell(statuses, *outcount, take(*request_of(requests[i]), nullptr, nullptr));
    indices[(*outcount)++] = i;
  }
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

namespace {
// Requests that were freed while under way end by themselves.
struct Orphans {
  std::mutex mutex;
  std::vector<std::shared_ptr<Request>> requests;
};
Orphans& orphans() {
  static Orphans& made = *new Orphans();  // NOLINT: it outlives what the program destroys
  return made;
}
}  // namespace

void Request_free(MPI_Request* request) {
  require(*request != MPI_REQUEST_NULL, MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL");
  const auto found = request_of(*request);
  process().requests.remove(*request);
  *request = MPI_REQUEST_NULL;
  if (found->is_general && found->drop != nullptr && found->completed) {
    found->drop(found->extra_state);
  }
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
  // A send goes on, as MPI allows.
  if (!found->now.is_receive || found->now.test()) return;
  found->now.waits = false;
  found->now.work = {};
  found->now.finish = nullptr;
  found->now.outcome.cancelled = true;
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
}

// --- Statuses ------------------------------------------------------------------------------------

void Status_set_cancelled(MPI_Status* status, int flag) {
  set_bytes(*status, bytes_in(*status), flag != 0);
}
void Status_set_elements(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  const Datatype& type = type_of(datatype);
  const std::int64_t bytes = count == MPI_UNDEFINED ? 0 : count * type.size();
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
