#include "errors.h"

#include <unistd.h>

#include <exception>
#include <new>
#include <string>

#include "arguments.h"
#include "hocket/error_names.h"

namespace hocket::python {
namespace {

nb::module_ classes() { return nb::module_::import_("hocket.errors"); }

// Python has a SystemError of its own, so hocket's has another name there.
const char* class_name(ErrorCode code) {
  return code == ErrorCode::kSystem ? "SystemError_" : names_of(code).exception;
}

nb::tuple to_tuple(const std::vector<RankCall>& calls) { return nb::tuple(to_list(calls)); }

// Sets the fields that only some classes of errors have.
void add_fields(nb::object& exception, const Error& error) {
  if (const auto* died = dynamic_cast<const PeerDied*>(&error)) {
    exception.attr("rank") = died->rank();
    exception.attr("pid") = died->pid();
    exception.attr("signal") = died->signal();
  } else if (const auto* late = dynamic_cast<const DeadlineExceeded*>(&error)) {
    nb::list missing;
    for (const int rank : late->missing()) missing.append(rank);
    exception.attr("missing") = nb::tuple(missing);
    exception.attr("calls") = to_tuple(late->calls());
  } else if (const auto* mismatch = dynamic_cast<const Mismatch*>(&error)) {
    exception.attr("calls") = to_tuple(mismatch->calls());
  } else if (const auto* system = dynamic_cast<const SystemError*>(&error)) {
    exception.attr("error_number") = system->error_number();
    exception.attr("errno") = system->error_number();  // OSError has this field
  }
}

nb::object exception_of(const Error& error) {
  nb::object exception = classes().attr(class_name(error.code()))(to_text(error.what()));
  exception.attr("status") = to_python(error.status());
  add_fields(exception, error);
  return exception;
}

// Sets the Python exception for a C++ error. A null pointer stands for an unwinding that is no C++
// exception: Python ends this thread, which no longer holds the GIL (see GilGivenAway). No frame of
// the module survives that unwinding, so the thread sleeps until the process exits.
void translate(const std::exception_ptr& pointer, void* /*payload*/) {
  while (pointer == nullptr) ::pause();
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    try {
      const nb::object exception = exception_of(error);
      PyErr_SetObject(exception.type().ptr(), exception.ptr());
    } catch (nb::python_error& raised) {
      // Python code that runs here also calls the handlers of pending signals. The handler of
      // Ctrl-C raises.
      raised.restore();
    }
  }
}

}  // namespace

nb::list to_list(const std::vector<RankCall>& calls) {
  const nb::object make = classes().attr("RankCall");
  nb::list result;
  for (const RankCall& call : calls)
    result.append(make(call.rank, call.sequence, to_text(call.call)));
  return result;
}

nb::object to_python(const Status& status) {
  return classes().attr("Status")(names_of(status.code).code,
                                  to_text(status.message),
                                  to_text(status.communicator),
                                  status.sequence,
                                  to_text(status.operation),
                                  status.rank,
                                  status.peer,
                                  to_text(status.host),
                                  to_text(status.reason));
}

// Runs Python code only after the catch blocks. Python may end this thread by unwinding while
// Python code runs, and unwinding through a catch block would terminate the process. `pointer`
// keeps the C++ exception alive meanwhile.
nb::object to_exception(const std::exception_ptr& pointer) {
  const Error* error = nullptr;
  std::string what;
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& caught) {
    error = &caught;
  } catch (const nb::python_error& caught) {
    return nb::borrow(caught.value());
  } catch (const std::exception& caught) {
    what = caught.what();
  }
  return error != nullptr ? exception_of(*error) : classes().attr("Error")(to_text(what));
}

void bind_errors() { nb::register_exception_translator(translate); }

}  // namespace hocket::python
