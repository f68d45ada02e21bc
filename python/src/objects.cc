// Objects between ranks: Python values to hocket's and back, by the safe codec.
#include <complex>
#include <cstring>
#include <string>
#include <unordered_set>

#include "arguments.h"
#include "hocket/error.h"
#include "hocket/object.h"
#include "verbs.h"

namespace hocket::python {
namespace {

enum class Pickle { kRefuse, kAllow };

nb::module_ pickle_module() { return nb::module_::import_("pickle"); }

// --- Python to hocket -------------------------------------------------------------------------

// One object's way to hocket.
struct Reading {
  Pickle pickle;
  bool changes = false;  // some of it arrives as of another type: a tensor as a NumPy array
  // The lists, dicts, byte arrays and arrays that were met. The object keeps them alive.
  std::unordered_set<PyObject*> changeable = {};
};

Object to_object(nb::handle value, Reading& reading, int depth);

[[noreturn]] void refuse_part(const std::string& what) {
  throw InvalidArgument("object holds " + what +
                        "; without allow_pickle=True it may hold None, bool, int, float, complex, "
                        "str, bytes, bytearray, list, tuple, dict, NumPy's scalars and arrays");
}

// Refuses a changeable part that was read before: a change to one of the two would miss the other.
void require_new(nb::handle value, Reading& reading) {
  if (reading.changeable.insert(value.ptr()).second) return;
  throw InvalidArgument("object holds " + type_in_words(value) +
                        " twice, or within itself, which would arrive as two; put copies into it, "
                        "or pass allow_pickle=True on all ranks");
}

Object integer_object(nb::handle value) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0) {
    if (small == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return small;
  }
  const nb::object magnitude = nb::steal(PyNumber_Absolute(value.ptr()));
  const auto bits = nb::cast<std::size_t>(magnitude.attr("bit_length")());
  const nb::object bytes = magnitude.attr("to_bytes")((bits + 7) / 8, "little");
  return Object::integer(overflow < 0, bytes_of(nb::borrow<nb::bytes>(bytes)));
}

std::vector<Object> items_of(nb::handle sequence, Reading& reading, int depth) {
  std::vector<Object> items;
  for (nb::handle item : sequence) items.push_back(to_object(item, reading, depth + 1));
  return items;
}

Object dict_object(nb::handle value, Reading& reading, int depth) {
  std::vector<Object::Entry> entries;
  for (auto [key, item] : nb::borrow<nb::dict>(value)) {
    entries.emplace_back(to_object(key, reading, depth + 1), to_object(item, reading, depth + 1));
  }
  return Object::dict(std::move(entries));
}

Object string_object(nb::handle value) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
  if (text == nullptr) {
    PyErr_Clear();
    refuse_part("a str with lone surrogates, which UTF-8 cannot say");
  }
  return Object(std::string(text, static_cast<std::size_t>(length)));
}

// True if the value travels as an array. If pickle, which keeps types, is refused, arrays of other
// packages and `memoryview` arrive as NumPy's. A subclass would arrive as its base.
bool is_array(nb::handle value, Pickle pickle) {
  if (is_plain_numpy(value)) return true;
  if (pickle == Pickle::kAllow || is_numpy_subclass(value)) return false;
  if (PyBytes_Check(value.ptr()) || PyByteArray_Check(value.ptr())) return false;
  return nb::hasattr(value, "__dlpack__") || PyObject_CheckBuffer(value.ptr());
}

bool is_fortran(nb::handle value) {
  if (!is_plain_numpy(value)) return false;
  const nb::object flags = value.attr("flags");
  return nb::cast<bool>(flags.attr("f_contiguous")) && !nb::cast<bool>(flags.attr("c_contiguous"));
}

// Reads a part of the object, an array or a scalar, of which `array` has the elements.
Array read_part(nb::handle part, nb::handle array) {
  try {
    return read_array(array, "x");
  } catch (const InvalidArgument& error) {
    if (is_numpy_scalar(part)) refuse_part(type_in_words(part));
    if (!is_plain_numpy(part)) {
      throw InvalidArgument("object holds " + type_in_words(part) + ": " + error.what());
    }
    const nb::object dtype = part.attr("dtype");
    refuse_part(std::string("an array of dtype ") + nb::str(nb::handle(dtype)).c_str());
  }
}

Object array_object(nb::handle value) {
  // Strided and Fortran-ordered arrays are brought to C order; the codec copies in any case.
  const nb::object contiguous =
      nb::hasattr(value, "__array_interface__")
          ? nb::module_::import_("numpy").attr("asanyarray")(value, nb::arg("order") = "C")
          : nb::borrow(value);
  const Array array = read_part(value, contiguous);
  require_c_order(array, "an array in object");
  const Shape shape = shape_of(array);
  Object result = Object::array(array.input(), {shape.begin(), shape.end()});
  if (!is_fortran(value)) return result;
  auto fortran = std::make_shared<ObjectArray>(result.as_array());
  fortran->is_fortran = true;
  return Object::array(std::move(fortran));
}

// An array whose type tells it from a number; with others, such as dates, only pickle can deal.
Object scalar_object(nb::handle value) {
  const nb::object array = array_of_numpy_scalar(value);
  return Object::scalar(read_part(value, array).input());
}

Object to_object(nb::handle value, Reading& reading, int depth) {
  PyObject* p = value.ptr();
  if (depth > kMaxObjectDepth) {
    throw InvalidArgument("object nests deeper than " + std::to_string(kMaxObjectDepth) +
                          " levels, or holds itself; flatten it, or pass "
                          "allow_pickle=True on all ranks");
  }
  // Exact types: a subclass (an enum, a named tuple) would come back as its base.
  if (p == Py_None) return {};
  if (PyBool_Check(p)) return p == Py_True;
  if (PyLong_CheckExact(p)) return integer_object(value);
  if (PyFloat_CheckExact(p)) return PyFloat_AsDouble(p);
  if (PyComplex_CheckExact(p)) {
    return std::complex<double>(PyComplex_RealAsDouble(p), PyComplex_ImagAsDouble(p));
  }
  if (PyUnicode_CheckExact(p)) return string_object(value);
  if (PyBytes_CheckExact(p)) return Object::bytes(bytes_of(nb::borrow<nb::bytes>(value)));
  if (PyTuple_CheckExact(p)) return Object::tuple(items_of(value, reading, depth));
  const bool is_scalar = is_numpy_scalar(value);
  if (!is_scalar) require_new(value, reading);
  if (PyList_CheckExact(p)) return Object::list(items_of(value, reading, depth));
  if (PyDict_CheckExact(p)) return dict_object(value, reading, depth);
  if (PyByteArray_CheckExact(p)) {
    const nb::ft_object_guard unchanged(value);
    return Object::byte_array({reinterpret_cast<const std::byte*>(PyByteArray_AsString(p)),
                               static_cast<std::size_t>(PyByteArray_Size(p))});
  }
  if (is_scalar || is_array(value, reading.pickle)) {
    Object result = is_scalar ? scalar_object(value) : array_object(value);
    reading.changes |= !is_scalar && !is_plain_numpy(value);
    return result;
  }
  refuse_part(type_in_words(value));
}

// Reads one object that is sent. An object that is not all plain is pickled as a whole, so that
// parts of it that are the same stay the same.
Object read_object(nb::handle value, Reading& reading) {
  reading.changeable.clear();
  const bool changed = reading.changes;
  try {
    return to_object(value, reading, 0);
  } catch (const InvalidArgument&) {
    if (reading.pickle == Pickle::kRefuse) throw;
  }
  reading.changes = changed;
  const nb::object bytes = pickle_module().attr("dumps")(value, nb::arg("protocol") = -1);
  return Object::pickle(bytes_of(nb::borrow<nb::bytes>(bytes)));
}

// --- hocket to Python -------------------------------------------------------------------------

nb::object from_object(const Object& object, Pickle pickle);

nb::object to_bytes(std::span<const std::byte> bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

nb::object from_integer(const Object& object) {
  if (object.fits_int64()) return nb::int_(object.as_integer());
  const nb::object magnitude = nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type))
                                   .attr("from_bytes")(to_bytes(object.magnitude()), "little");
  return object.is_negative() ? steal_or_throw(PyNumber_Negative(magnitude.ptr())) : magnitude;
}

nb::object from_array(const ObjectArray& array) {
  const nb::object result =
      new_numpy_array(array.dtype, Shape(array.shape.begin(), array.shape.end()));
  const Array target = writable_array(result, "array");
  if (!array.data.empty()) std::memcpy(target.data, array.data.data(), array.data.size());
  return array.is_fortran ? nb::module_::import_("numpy").attr("asfortranarray")(result) : result;
}

nb::object from_scalar(const ObjectArray& array) {
  return from_array(array).attr("__getitem__")(nb::make_tuple());
}

nb::object to_byte_array(std::span<const std::byte> bytes) {
  return steal_or_throw(PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                                      static_cast<Py_ssize_t>(bytes.size())));
}

nb::list from_items(std::span<const Object> items, Pickle pickle) {
  nb::list list;
  for (const Object& item : items) list.append(from_object(item, pickle));
  return list;
}

nb::object from_dict(const Object& object, Pickle pickle) {
  nb::dict dict;
  for (const auto& [key, value] : object.entries()) {
    dict[from_object(key, pickle)] = from_object(value, pickle);
  }
  return dict;
}

nb::object from_pickle(const Object& object, Pickle pickle) {
  if (pickle == Pickle::kRefuse) {
    throw InvalidArgument(
        "the object that came is pickled, and unpickling runs whatever code it "
        "asks for; where you trust all ranks, pass allow_pickle=True");
  }
  return pickle_module().attr("loads")(to_bytes(object.as_pickle()));
}

nb::object from_object(const Object& object, Pickle pickle) {
  switch (object.kind()) {
    case ObjectKind::kNone:
      return nb::none();
    case ObjectKind::kBool:
      return nb::bool_(object.as_bool());
    case ObjectKind::kInteger:
      return from_integer(object);
    case ObjectKind::kDouble:
      return nb::float_(object.as_double());
    case ObjectKind::kComplex:
      return steal_or_throw(
          PyComplex_FromDoubles(object.as_complex().real(), object.as_complex().imag()));
    case ObjectKind::kString:
      return nb::str(object.as_string().data(), object.as_string().size());
    case ObjectKind::kBytes:
      return to_bytes(object.as_bytes());
    case ObjectKind::kList:
      return from_items(object.items(), pickle);
    case ObjectKind::kTuple:
      return nb::tuple(from_items(object.items(), pickle));
    case ObjectKind::kDict:
      return from_dict(object, pickle);
    case ObjectKind::kArray:
      return from_array(object.as_array());
    case ObjectKind::kPickle:
      return from_pickle(object, pickle);
    case ObjectKind::kScalar:
      return from_scalar(object.as_array());
    case ObjectKind::kByteArray:
      return to_byte_array(object.as_bytes());
  }
  return nb::none();
}

// --- The calls --------------------------------------------------------------------------------

// None: as the communicator has it.
Pickle pickle_argument(const CommunicatorObject& self, nb::handle allow) {
  const bool is_allowed =
      allow.is_none() ? self.allows_pickle : flag_argument(allow, "allow_pickle");
  return is_allowed ? Pickle::kAllow : Pickle::kRefuse;
}

nb::object broadcast_object(CommunicatorObject& self,
                            nb::handle object,
                            nb::handle root,
                            nb::handle allow_pickle,
                            nb::handle deadline) {
  RootOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = root_options(root, deadline);
    reading.pickle = pickle_argument(self, allow_pickle);
    return self.comm.rank() == options.root ? read_object(object, reading) : Object();
  });
  const Object result =
      without_gil([&] { return hocket::broadcast_object(self.comm, mine, options); });
  // The root also returns what the others get. If that equals the original, the original is
  // returned.
  if (self.comm.rank() == options.root && !reading.changes) return nb::borrow(object);
  return from_object(result, reading.pickle);
}

nb::object gather_object(CommunicatorObject& self,
                         nb::handle object,
                         nb::handle root,
                         nb::handle allow_pickle,
                         nb::handle deadline) {
  RootOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = root_options(root, deadline);
    reading.pickle = pickle_argument(self, allow_pickle);
    return read_object(object, reading);
  });
  const auto all = without_gil([&] { return hocket::gather_object(self.comm, mine, options); });
  if (self.comm.rank() != options.root) return nb::none();
  return from_items(all, reading.pickle);
}

nb::object all_gather_object(CommunicatorObject& self,
                             nb::handle object,
                             nb::handle allow_pickle,
                             nb::handle deadline) {
  CallOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = {duration_argument(deadline, "deadline")};
    reading.pickle = pickle_argument(self, allow_pickle);
    return read_object(object, reading);
  });
  const auto all = without_gil([&] { return hocket::all_gather_object(self.comm, mine, options); });
  return from_items(all, reading.pickle);
}

// The objects that the root scatters; nothing elsewhere.
std::vector<Object> read_scattered(CommunicatorObject& self,
                                   nb::handle objects,
                                   int root,
                                   Pickle pickle) {
  Reading reading{.pickle = pickle};
  std::vector<Object> read;
  if (self.comm.rank() != root) return read;
  require_iterable(objects, "objects", "a list of objects, one for each rank");
  for (nb::handle object : objects) read.push_back(read_object(object, reading));
  return read;
}

nb::object scatter_object(CommunicatorObject& self,
                          nb::handle objects,
                          nb::handle root,
                          nb::handle allow_pickle,
                          nb::handle deadline) {
  RootOptions options;
  Pickle pickle{};
  const std::vector<Object> all = read_arguments(self, [&] {
    options = root_options(root, deadline);
    pickle = pickle_argument(self, allow_pickle);
    return read_scattered(self, objects, options.root, pickle);
  });
  const Object mine = without_gil([&] { return hocket::scatter_object(self.comm, all, options); });
  return from_object(mine, pickle);
}

// --- Without waiting --------------------------------------------------------------------------

// A started call, whose result `convert` makes of the one of C++.
template <typename Result, typename Convert>
WorkHandle work_of(const char* name, ObjectWork<Result> started, Convert convert) {
  WorkHandle handle{.call = name};
  handle.work = std::move(started.work);
  handle.make = [result = std::move(started.result), convert = std::move(convert)]() -> nb::object {
    return convert(without_gil(result));
  };
  return handle;
}

WorkHandle broadcast_object_async(CommunicatorObject& self,
                                  nb::handle object,
                                  nb::handle root,
                                  nb::handle allow_pickle,
                                  nb::handle deadline) {
  RootOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = root_options(root, deadline);
    reading.pickle = pickle_argument(self, allow_pickle);
    return self.comm.rank() == options.root ? read_object(object, reading) : Object();
  });
  const bool keeps = self.comm.rank() == options.root && !reading.changes;
  return work_of(
      "broadcast_object",
      without_gil([&] { return hocket::broadcast_object_async(self.comm, mine, options); }),
      [pickle = reading.pickle, own = keeps ? nb::borrow(object) : nb::object()](
          const Object& came) { return own.is_valid() ? own : from_object(came, pickle); });
}

WorkHandle gather_object_async(CommunicatorObject& self,
                               nb::handle object,
                               nb::handle root,
                               nb::handle allow_pickle,
                               nb::handle deadline) {
  RootOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = root_options(root, deadline);
    reading.pickle = pickle_argument(self, allow_pickle);
    return read_object(object, reading);
  });
  const bool is_root = self.comm.rank() == options.root;
  return work_of("gather_object",
                 without_gil([&] { return hocket::gather_object_async(self.comm, mine, options); }),
                 [pickle = reading.pickle, is_root](const std::vector<Object>& all) -> nb::object {
                   if (!is_root) return nb::none();
                   return from_items(all, pickle);
                 });
}

WorkHandle all_gather_object_async(CommunicatorObject& self,
                                   nb::handle object,
                                   nb::handle allow_pickle,
                                   nb::handle deadline) {
  CallOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = {duration_argument(deadline, "deadline")};
    reading.pickle = pickle_argument(self, allow_pickle);
    return read_object(object, reading);
  });
  return work_of(
      "all_gather_object",
      without_gil([&] { return hocket::all_gather_object_async(self.comm, mine, options); }),
      [pickle = reading.pickle](const std::vector<Object>& all) {
        return from_items(all, pickle);
      });
}

WorkHandle scatter_object_async(CommunicatorObject& self,
                                nb::handle objects,
                                nb::handle root,
                                nb::handle allow_pickle,
                                nb::handle deadline) {
  RootOptions options;
  Pickle pickle{};
  const std::vector<Object> all = read_arguments(self, [&] {
    options = root_options(root, deadline);
    pickle = pickle_argument(self, allow_pickle);
    return read_scattered(self, objects, options.root, pickle);
  });
  return work_of("scatter_object",
                 without_gil([&] { return hocket::scatter_object_async(self.comm, all, options); }),
                 [pickle](const Object& mine) { return from_object(mine, pickle); });
}

nb::object to_python(const ReceivedObject& received, Pickle pickle) {
  return nb::module_::import_("hocket._types")
      .attr("ReceivedObject")(
          from_object(received.object, pickle), received.from.source, received.from.tag);
}

MessageOptions message_options(nb::handle tag, nb::handle deadline) {
  return {integer_argument(tag, "tag"), duration_argument(deadline, "deadline")};
}

void send_object(CommunicatorObject& self,
                 nb::handle object,
                 nb::handle destination,
                 nb::handle tag,
                 nb::handle allow_pickle,
                 nb::handle deadline) {
  Reading reading{.pickle = pickle_argument(self, allow_pickle)};
  const Object sent = read_object(object, reading);
  const int to = integer_argument(destination, "destination");
  const MessageOptions options = message_options(tag, deadline);
  without_gil([&] { hocket::send_object(self.comm, sent, to, options); });
}

nb::object recv_object(CommunicatorObject& self,
                       nb::handle source,
                       nb::handle tag,
                       nb::handle allow_pickle,
                       nb::handle deadline) {
  const Pickle pickle = pickle_argument(self, allow_pickle);
  const int from = integer_argument(source, "source");
  const MessageOptions options = message_options(tag, deadline);
  return to_python(without_gil([&] { return hocket::recv_object(self.comm, from, options); }),
                   pickle);
}

WorkHandle send_object_async(CommunicatorObject& self,
                             nb::handle object,
                             nb::handle destination,
                             nb::handle tag,
                             nb::handle allow_pickle,
                             nb::handle deadline) {
  Reading reading{.pickle = pickle_argument(self, allow_pickle)};
  const Object sent = read_object(object, reading);
  const int to = integer_argument(destination, "destination");
  const MessageOptions options = message_options(tag, deadline);
  WorkHandle handle{.result = nb::none(), .call = "send_object"};
  handle.work =
      without_gil([&] { return hocket::send_object_async(self.comm, sent, to, options); });
  return handle;
}

WorkHandle recv_object_async(CommunicatorObject& self,
                             nb::handle source,
                             nb::handle tag,
                             nb::handle allow_pickle,
                             nb::handle deadline) {
  const Pickle pickle = pickle_argument(self, allow_pickle);
  const int from = integer_argument(source, "source");
  const MessageOptions options = message_options(tag, deadline);
  return work_of("recv_object",
                 without_gil([&] { return hocket::recv_object_async(self.comm, from, options); }),
                 [pickle](const ReceivedObject& received) { return to_python(received, pickle); });
}

}  // namespace

void bind_objects(CommunicatorClass& cls) {
  using nb::arg;
  cls.def("broadcast_object",
          &broadcast_object,
          arg("obj").none() = nb::none(),
          arg("root").none() = 0,
          arg("allow_pickle") = nb::none(),
          arg("deadline") = nb::none(),
          nb::sig("def broadcast_object(self, obj: Any = None, root: int = 0, "
                  "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Any"),
          R"(Send the root's object to all ranks.

Parameters
----------
obj : object
    At the root what is sent: None, bool, int, float, complex, str, bytes, bytearray, arrays, NumPy's
    scalars, and lists, tuples and dicts of those. Elsewhere ignored. All arrive as they were sent,
    but for arrays that are not NumPy's: those arrive as NumPy's. Refused are subclasses of these
    types, and a list, dict, bytearray or array that the object holds twice.
root : int
    The rank that sends.
allow_pickle : bool, optional
    Send an object that holds anything else by pickle, as a whole. Unpickling runs the code that
    the sender asks for: only where all ranks are trusted, and all must say it. By default the
    communicator's `allow_pickle`.

Returns
-------
object
    The same on all ranks. At the root `obj` itself, unless arrays in it arrive as NumPy's.
)");
  cls.def(
      "gather_object",
      &gather_object,
      arg("obj").none(),
      arg("root").none() = 0,
      arg("allow_pickle") = nb::none(),
      arg("deadline") = nb::none(),
      nb::sig(
          "def gather_object(self, obj: Any, root: int = 0, allow_pickle: Optional[bool] = None, "
          "deadline: Timeout = None) -> Optional[list[Any]]"),
      "The objects of all ranks, in order, at the root; None elsewhere. For the arguments see "
      "`broadcast_object`.");
  cls.def("all_gather_object",
          &all_gather_object,
          arg("obj").none(),
          arg("allow_pickle") = nb::none(),
          arg("deadline") = nb::none(),
          nb::sig("def all_gather_object(self, obj: Any, allow_pickle: Optional[bool] = None, "
                  "deadline: Timeout = None) -> list[Any]"),
          "The objects of all ranks, in order, on every rank. For the arguments see "
          "`broadcast_object`.");
  cls.def(
      "scatter_object",
      &scatter_object,
      arg("objects").none() = nb::none(),
      arg("root").none() = 0,
      arg("allow_pickle") = nb::none(),
      arg("deadline") = nb::none(),
      nb::sig(
          "def scatter_object(self, objects: Optional[Sequence[Any]] = None, "
          "root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Any"),
      "Rank r gets objects[r] of the root. For the other arguments see `broadcast_object`.");
  cls.def("send_object",
          &send_object,
          arg("obj").none(),
          arg("destination").none(),
          arg("tag").none() = 0,
          arg("allow_pickle") = nb::none(),
          arg("deadline") = nb::none(),
          nb::sig("def send_object(self, obj: Any, destination: int, tag: int = 0, "
                  "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> None"),
          R"(Send an object to one rank, which receives it by `recv_object`.

`obj` and `allow_pickle` are those of
`broadcast_object`, `destination` and `tag` those of `send`.
)");
  cls.def(
      "recv_object",
      &recv_object,
      arg("source").none() = kAnySource,
      arg("tag").none() = 0,
      arg("allow_pickle") = nb::none(),
      arg("deadline") = nb::none(),
      nb::sig("def recv_object(self, source: int = -1, tag: int = 0, "
              "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> ReceivedObject"),
      R"(Receive what a rank sent by `send_object`.

Parameters
----------
source : int
    The rank to receive from; `hocket.ANY_SOURCE` (-1) for whoever sends first.
tag : int
    At least 0; `hocket.ANY_TAG` (-1) for whichever comes first, which must be an object.
allow_pickle : bool, optional
    Also take what only pickle can carry; see `broadcast_object`.

Returns
-------
ReceivedObject
    Named tuple (object, source, tag).
)");
  const auto start = [&cls](const char* name,
                            auto call,
                            const char* signature,
                            const char* help,
                            const auto&... arguments) {
    cls.def(name,
            call,
            arguments...,
            arg("allow_pickle") = nb::none(),
            arg("deadline") = nb::none(),
            nb::sig(signature),
            help);
  };
  start("broadcast_object_async",
        &broadcast_object_async,
        "def broadcast_object_async(self, obj: Any = None, root: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `broadcast_object`; the Work's `wait()` returns the object. It is read at once.",
        arg("obj").none() = nb::none(),
        arg("root").none() = 0);
  start("gather_object_async",
        &gather_object_async,
        "def gather_object_async(self, obj: Any, root: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `gather_object`; the Work's `wait()` returns the objects at the root.",
        arg("obj").none(),
        arg("root").none() = 0);
  start("all_gather_object_async",
        &all_gather_object_async,
        "def all_gather_object_async(self, obj: Any, allow_pickle: Optional[bool] = None, "
        "deadline: Timeout = None) -> Work",
        "Start an `all_gather_object`; the Work's `wait()` returns the objects.",
        arg("obj").none());
  start("scatter_object_async",
        &scatter_object_async,
        "def scatter_object_async(self, objects: Optional[Sequence[Any]] = None, root: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `scatter_object`; the Work's `wait()` returns this rank's object.",
        arg("objects").none() = nb::none(),
        arg("root").none() = 0);
  start("send_object_async",
        &send_object_async,
        "def send_object_async(self, obj: Any, destination: int, tag: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `send_object`. The object is read at once, and may be changed afterwards.",
        arg("obj").none(),
        arg("destination").none(),
        arg("tag").none() = 0);
  start("recv_object_async",
        &recv_object_async,
        "def recv_object_async(self, source: int = -1, tag: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `recv_object`; the Work's `wait()` returns the ReceivedObject.",
        arg("source").none() = kAnySource,
        arg("tag").none() = 0);
}

}  // namespace hocket::python
