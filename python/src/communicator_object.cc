#include "communicator_object.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "hocket/error.h"
#include "own_operator.h"

namespace hocket::python {
namespace {

double seconds_of(nb::handle value, const char* name) {
  // Accepts any number, such as NumPy's scalars. Refuses a str, although Python's float() would
  // parse it.
  if (PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) != 0 ||
      nb::hasattr(value.type(), "__float__")) {
    const double seconds = PyFloat_AsDouble(value.ptr());
    if (seconds != -1.0 || PyErr_Occurred() == nullptr) return seconds;
    if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
      PyErr_Clear();
      throw InvalidArgument(std::string(name) + " is too large; math.inf waits for ever");
    }
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();  // some arrays and NumPy's timedelta64 have the method, but cannot convert
  }
  if (nb::hasattr(value, "total_seconds")) {
    const nb::object seconds = value.attr("total_seconds")();
    if (PyFloat_Check(seconds.ptr())) return PyFloat_AsDouble(seconds.ptr());
  }
  throw InvalidArgument(std::string(name) + " is " + type_in_words(value) +
                        "; give seconds, a datetime.timedelta, math.inf, or None for the default");
}

// Returns one line that describes an exception, such as "RuntimeError: no". `what()` is not used,
// because it begins with the traceback of Python code. The text of a refusal has a limited length,
// so the traceback could push the error out.
std::string summary(const nb::python_error& error) {
  std::string text = nb::type_name(error.type()).c_str();
  const nb::object words = nb::steal(PyObject_Str(error.value().ptr()));
  const nb::object bytes = nb::steal(
      words.is_valid() ? PyUnicode_AsEncodedString(words.ptr(), "utf-8", "backslashreplace")
                       : nullptr);
  PyErr_Clear();  // `__str__` is Python code, too, and may raise
  if (!bytes.is_valid() || PyBytes_Size(bytes.ptr()) == 0) return text;
  return text + ": " + PyBytes_AsString(bytes.ptr());
}

// Returns true if the process is ending and the world can still leave the job. With the engine mpi
// it cannot leave, because MPI may have been finalized already.
bool leaves_at_exit(const World& world) {
  return is_ending() && std::ranges::find(world.engines(), "mpi") == world.engines().end();
}

}  // namespace

CommunicatorObject::~CommunicatorObject() {
  if (!comm.impl()) return;  // moved from
  held.reset();
  if (world && leaves_at_exit(*world)) world->leave_at_exit();
  without_gil_or_signals([this] {
    world.reset();
    const Communicator last(std::move(comm));
  });
}

void announce_refusal(CommunicatorObject& self, Refuse refuse) {
  std::string reason = "its arguments were refused in Python";
  try {
    throw;
  } catch (const nb::python_error& error) {
    reason = summary(error);
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
  }
  try {
    without_gil([&] { refuse(self.comm, reason); });
  } catch (const nb::python_error&) {
    throw;
  } catch (const std::exception&) {  // the refused call has thrown, as it should
  }
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (const std::ptrdiff_t extent : shape) text += std::to_string(extent) + ", ";
  if (shape.size() > 1) text.resize(text.size() - 2);
  if (shape.size() == 1) text.pop_back();
  return text + ")";
}

nb::tuple tuple_of(const Shape& shape) {
  nb::list extents;
  for (const std::ptrdiff_t extent : shape) extents.append(extent);
  return nb::tuple(extents);
}

namespace {

[[noreturn]] void refuse_duration(double seconds, const char* name, const char* wanted) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", seconds);
  throw InvalidArgument(std::string(name) + " is " + text + " s, expected " + wanted);
}

std::optional<Duration> duration_of(double seconds) {
  constexpr double kCenturySeconds = 3.2e9;  // more means forever, and would overflow a Duration
  if (seconds > kCenturySeconds) return kForever;
  return Duration(static_cast<Duration::rep>(seconds * 1e9));
}

}  // namespace

std::optional<Duration> duration_argument(nb::handle value, const char* name) {
  if (value.is_none()) return std::nullopt;
  const double seconds = seconds_of(value, name);
  if (!(seconds >= 0)) refuse_duration(seconds, name, "0 s or more");
  return duration_of(seconds);
}

std::optional<Duration> limit_argument(nb::handle value, const char* name) {
  if (value.is_none()) return std::nullopt;
  const double seconds = seconds_of(value, name);
  if (!(seconds > 0)) refuse_duration(seconds, name, "more than 0 s");
  return duration_of(seconds);
}

ReduceOp op_argument(nb::handle op) {
  Py_ssize_t length = 0;
  const char* name =
      PyUnicode_Check(op.ptr()) ? PyUnicode_AsUTF8AndSize(op.ptr(), &length) : nullptr;
  if (name == nullptr) {
    PyErr_Clear();
    if (OwnOperator::of(op) != nullptr) {
      throw InvalidArgument(
          "op is a hocket.Operator, which all_reduce, reduce, reduce_scatter, scan and exscan "
          "take, "
          "and no other call");
    }
    throw InvalidArgument(
        "op is " + type_in_words(op) +
        "; give a name: \"sum\", \"product\", \"min\", \"max\", \"avg\", \"band\", \"bor\" or "
        "\"bxor\"" +
        (PyCallable_Check(op.ptr()) == 0 ? ""
                                         : ", or to all_reduce, reduce, reduce_scatter, scan and "
                                           "exscan hocket.Operator(op)"));
  }
  return reduce_op_from_name({name, static_cast<std::size_t>(length)});
}

}  // namespace hocket::python
