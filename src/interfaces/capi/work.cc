// Works: calls that were started.
#include "interfaces/capi/options.h"

using hocket::InvalidArgument;
using hocket::capi::guarded;
using hocket::capi::of;
using hocket::capi::place;

int hocket_work_wait(hocket_work* work) {
  return guarded("hocket_work_wait", [&] { of(work, "work").work.wait(); });
}

int hocket_work_wait_on(hocket_work* work, void* stream) {
  return guarded("hocket_work_wait_on", [&] {
    of(work, "work").work.wait(hocket::StreamRef(static_cast<CUstream_st*>(stream)));
  });
}

int hocket_work_wait_for(hocket_work* work, int64_t timeout_ns, int* done) {
  return guarded("hocket_work_wait_for", [&] {
    hocket::Work& waited = of(work, "work").work;
    int& result = place(done, "done");
    result = waited.wait_for(hocket::capi::timeout(timeout_ns)) ? 1 : 0;
  });
}

int hocket_work_test(hocket_work* work, int* done) {
  return guarded("hocket_work_test", [&] {
    hocket::Work& tested = of(work, "work").work;
    place(done, "done") = tested.test() ? 1 : 0;
  });
}

int hocket_work_withdraw(hocket_work* work, int* withdrawn) {
  return guarded("hocket_work_withdraw", [&] {
    hocket::Work& receive = of(work, "work").work;
    int& result = place(withdrawn, "withdrawn");
    result = receive.withdraw() ? 1 : 0;
  });
}

int hocket_work_received(const hocket_work* work, hocket_received* received) {
  return guarded("hocket_work_received", [&] {
    const auto came = of(work, "work").work.received();
    if (!came) {
      throw InvalidArgument("this work is no receive that has ended well; wait for it first");
    }
    place(received, "received") = hocket::capi::as_c(*came);
  });
}

int hocket_work_on_done(hocket_work* work, hocket_callback f, void* context) {
  return guarded("hocket_work_on_done", [&] {
    hocket::Work& told = of(work, "work").work;
    if (f == nullptr) throw InvalidArgument("f is null; it is the function");
    told.on_done([f, context] { f(context); });
  });
}

void hocket_work_free(hocket_work** work) { hocket::capi::release(work); }
