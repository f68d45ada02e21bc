#include "bootstrap.h"

#include <utility>

#include "arguments.h"
#include "communicator_object.h"
#include "hocket/error.h"

namespace hocket::python {
namespace {

// Forwards each call to a method of a Python object. Exceptions of these methods pass through.
class PythonBootstrap final : public Bootstrap {
 public:
  explicit PythonBootstrap(nb::object self)
      : self_(std::move(self)),
        rank_(integer_argument(self_.attr("rank"), "the bootstrap's rank")),
        size_(integer_argument(self_.attr("size"), "the bootstrap's size")) {}
  ~PythonBootstrap() override {
    const nb::gil_scoped_acquire acquire;
    self_.reset();
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void broadcast(std::span<std::byte> bytes, int root) override {
    with_gil([&] { self_.attr("broadcast")(array(bytes, "uint8"), root); });
  }
  void all_reduce(std::span<std::int64_t> values, Fold fold) override {
    const char* op = fold == Fold::kSum ? "sum" : fold == Fold::kMin ? "min" : "max";
    with_gil([&] { self_.attr("all_reduce")(array(std::as_writable_bytes(values), "int64"), op); });
  }

 private:
  // Returns a NumPy array over the memory, without a copy.
  static nb::object array(std::span<std::byte> bytes, const char* dtype) {
    const nb::object view = nb::steal(PyMemoryView_FromMemory(
        reinterpret_cast<char*>(bytes.data()), static_cast<Py_ssize_t>(bytes.size()), PyBUF_WRITE));
    if (!view.is_valid()) throw nb::python_error();
    return nb::module_::import_("numpy").attr("frombuffer")(view, dtype);
  }

  nb::object self_;
  int rank_;
  int size_;
};

}  // namespace

std::unique_ptr<Bootstrap> bootstrap_argument(nb::handle bootstrap, nb::handle mpi) {
  if (bootstrap.is_none() && mpi.is_none()) return nullptr;
  if (!bootstrap.is_none() && !mpi.is_none()) {
    throw InvalidArgument("init was given both bootstrap and mpi; give one of them");
  }
  const nb::module_ classes = nb::module_::import_("hocket.bootstrap");
  if (!mpi.is_none()) {
    return std::make_unique<PythonBootstrap>(classes.attr("MPIBootstrap")(mpi));
  }
  if (!nb::isinstance(bootstrap, classes.attr("Bootstrap"))) {
    PyErr_Format(PyExc_TypeError,
                 "bootstrap is a %s; derive it from hocket.Bootstrap",
                 name_of_type(bootstrap).c_str());
    throw nb::python_error();
  }
  return std::make_unique<PythonBootstrap>(nb::borrow(bootstrap));
}

void refuse_joining(Bootstrap* group) {
  if (group == nullptr) return;
  try {
    // No rank has the number -1, so `init` throws on all processes of the group.
    without_gil([&] { static_cast<void>(hocket::init(*group, {.rank = -1})); });
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // not a failure of the group, but Ctrl-C
  } catch (const std::exception&) {              // `init` is expected to throw
  }
}

}  // namespace hocket::python
