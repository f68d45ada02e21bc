// Wraps each function of the module. A function's vectorcall slot (PEP 590) points to `call` in
// this file, and `call` calls nanobind's function. The wrapper accepts `deadline` and `timeout` for
// each other, and explains wrong arguments. If a collective call is refused for wrong arguments,
// the wrapper tells the other ranks. For a call without keywords, it costs two more branches.
#include "keywords.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "arguments.h"
#include "communicator_object.h"
#include "hocket/compression.h"

namespace hocket::python {
namespace {

// Python's `vectorcallfunc`. Python's stable interface (limited API) has it only since 3.12.
using Vectorcall = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);

// Python's PyVectorcall_NARGS, which the stable interface has only since 3.12, too. The highest bit
// of the count is a flag. It says that the callee may write to the element before the first
// argument.
constexpr std::size_t count_of(std::size_t count_and_flag) noexcept {
  return count_and_flag & ~(std::size_t{1} << (8 * sizeof(std::size_t) - 1));
}

constexpr std::size_t kSlots = 8;  // nanobind has six different vectorcall functions

// The facts about the wrapped functions. Written while the module is created, under the GIL.
struct KnownFunctions {
  std::array<Vectorcall, kSlots> originals{};
  // Maps a function to "timeout" or "deadline", if it takes exactly one of them.
  std::unordered_map<PyObject*, PyObject*> word;
  // Maps a collective function to the function that tells other ranks of a refused call.
  std::unordered_map<PyObject*, Refuse> refuse;
  PyObject* deadline = nullptr;
  PyObject* timeout = nullptr;
};

KnownFunctions& known() {
  static auto* const known = new KnownFunctions;  // never destroyed: used while Python ends
  return *known;
}

bool is_word(PyObject* name, PyObject* word) {
  return name == word || PyUnicode_Compare(name, word) == 0;
}

// Returns `names` with "timeout" or "deadline" replaced by the word that the function takes, as a
// new reference. Returns null if no name needs to be replaced.
PyObject* reworded(PyObject* function, PyObject* names) {
  const KnownFunctions& all = known();
  for (Py_ssize_t i = 0; i < PyTuple_Size(names); ++i) {
    PyObject* name = PyTuple_GetItem(names, i);
    if (!is_word(name, all.deadline) && !is_word(name, all.timeout)) continue;
    const auto found = all.word.find(function);
    if (found == all.word.end() || is_word(name, found->second)) continue;
    PyObject* result = PyTuple_New(PyTuple_Size(names));
    if (result == nullptr) throw nb::python_error();
    for (Py_ssize_t j = 0; j < PyTuple_Size(names); ++j) {
      PyObject* one = j == i ? found->second : PyTuple_GetItem(names, j);
      Py_INCREF(one);
      PyTuple_SetItem(result, j, one);
    }
    return result;
  }
  return nullptr;
}

// Methods of a communicator that are not collective: a refused call concerns no other rank.
constexpr std::string_view kOfOneRank[] = {"abort",
                                           "close",
                                           "dump",
                                           "exchange",
                                           "grid",
                                           "last_calls",
                                           "peer",
                                           "probe",
                                           "probe_now",
                                           "recent_calls",
                                           "recv",
                                           "recv_async",
                                           "recv_object",
                                           "refuse",
                                           "send",
                                           "send_async",
                                           "send_object",
                                           "send_recv"};

// Returns the communicator behind a method's `self`. Returns null if `self` has none, or if its
// `__init__` was not called.
CommunicatorObject* communicator_of(nb::handle self) {
  const bool is_prepared = nb::isinstance<PreparedHandle>(self);
  const bool is_symmetric = nb::isinstance<Symmetric>(self);
  const bool is_ours = is_prepared || is_symmetric || nb::isinstance<CommunicatorObject>(self);
  if (!is_ours || !nb::inst_ready(self)) return nullptr;
  if (is_prepared) return &nb::cast<CommunicatorObject&>(nb::cast<PreparedHandle&>(self).comm);
  if (is_symmetric) return &nb::cast<Symmetric&>(self).self;
  return &nb::cast<CommunicatorObject&>(self);
}

// Returns whether the function's body ran. If nanobind refused the arguments, it did not run.
bool was_called(const nb::python_error& error) {
  const std::string_view text = error.what();
  return text.find("(): incompatible function arguments.") == std::string_view::npos;
}

// Raises a TypeError that names the missing, surplus or unknown argument. `count` is the number of
// positional arguments.
void explain(PyObject* function, std::size_t count, PyObject* names) {
  nb::module_::import_("hocket._calls.keywords")
      .attr("explain")(nb::handle(function),
                       count,
                       names == nullptr ? nb::object(nb::tuple()) : nb::borrow(names));
}

// Handles a failed call. If the error is a TypeError of nanobind, raises an error that explains
// more. Then the call was not made, so the other ranks of a collective call are told.
void answer(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
  try {
    const nb::python_error before;  // takes the error that is set
    if (was_called(before)) throw before;
    const auto refuse = known().refuse.find(function);
    CommunicatorObject* const self =
        refuse == known().refuse.end() || count == 0 ? nullptr : communicator_of(arguments[0]);
    try {
      explain(function, count, names);
      throw before;
    } catch (const nb::python_error&) {
      if (self != nullptr) announce_refusal(*self, refuse->second);
      throw;
    }
  } catch (nb::python_error& better) {
    better.restore();
  }
}

PyObject* call_with_keywords(Vectorcall original,
                             PyObject* self,
                             PyObject* const* arguments,
                             std::size_t count,
                             PyObject* names) {
  try {
    const nb::object other = nb::steal(reworded(self, names));
    return original(self, arguments, count, other.is_valid() ? other.ptr() : names);
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

template <std::size_t kSlot>
PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t count, PyObject* names) {
  const Vectorcall original = known().originals[kSlot];
  PyObject* const result = names == nullptr
                               ? original(self, arguments, count, nullptr)
                               : call_with_keywords(original, self, arguments, count, names);
  if (result == nullptr) [[unlikely]]
    answer(self, arguments, count_of(count), names);
  return result;
}

template <std::size_t... kSlot>
constexpr std::array<Vectorcall, kSlots> calls(std::index_sequence<kSlot...>) {
  return {&call<kSlot>...};
}
constexpr auto kCalls = calls(std::make_index_sequence<kSlots>());

// Returns the vectorcall slot of a nanobind function, which is its first member. nanobind does not
// promise this layout. So the slot's value is checked: it must be an address in a loaded library.
Vectorcall& slot_of(nb::handle function) {
  auto& slot = *reinterpret_cast<Vectorcall*>(reinterpret_cast<std::byte*>(function.ptr()) +
                                              sizeof(PyVarObject));
  Dl_info found{};
  if (::dladdr(reinterpret_cast<const void*>(slot), &found) == 0) {
    throw std::runtime_error(
        "hocket: this nanobind-backend keeps its functions otherwise than the versions that hocket "
        "knows; install nanobind-backend 1.0");
  }
  return slot;
}

bool is_bound_function(nb::handle object) {
  const std::string type = name_of_type(object);
  return type == "nanobind.nb_func" || type == "nanobind.nb_method";
}

void mind(nb::handle function, nb::handle names_of) {
  KnownFunctions& all = known();
  Vectorcall& slot = slot_of(function);
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (slot == kCalls[i]) return;  // the same function under a second name
  }
  const nb::object names = names_of(function);
  const bool has_deadline = PySequence_Contains(names.ptr(), all.deadline) == 1;
  const bool has_timeout = PySequence_Contains(names.ptr(), all.timeout) == 1;
  if (has_deadline != has_timeout) {
    all.word.emplace(function.ptr(), has_deadline ? all.deadline : all.timeout);
  }
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (all.originals[i] != nullptr && all.originals[i] != slot) continue;
    all.originals[i] = slot;
    slot = kCalls[i];
    return;
  }
}

// Adds `__signature__` to nanobind's function types. These types refuse new attributes, so the
// entry is put into their dictionaries.
void give_signatures(nb::handle function, nb::handle method) {
  const nb::object made =
      nb::module_::import_("hocket._calls.signatures").attr("SignatureOfBound")();
  const nb::object bound = method.attr("__get__")(nb::int_(0));
  const nb::object referents = nb::module_::import_("gc").attr("get_referents");
  for (nb::handle type : {function.type(), method.type(), bound.type()}) {
    const nb::object dictionary = nb::object(referents(type.attr("__dict__"))[0]);
    dictionary["__signature__"] = made;
    PyType_Modified(reinterpret_cast<PyTypeObject*>(type.ptr()));
  }
}

}  // namespace

void mind_keywords(nb::module_& module) {
  KnownFunctions& all = known();
  all.deadline = PyUnicode_InternFromString("deadline");
  all.timeout = PyUnicode_InternFromString("timeout");
  const nb::object names_of = nb::module_::import_("hocket._calls.keywords").attr("names_of");
  for (nb::handle owner :
       {nb::type<CommunicatorObject>(), nb::type<Symmetric>(), nb::type<PreparedHandle>()}) {
    const nb::object members = nb::steal(PyMapping_Items(owner.attr("__dict__").ptr()));
    for (nb::handle member : members) {
      const std::string name = nb::cast<std::string>(member[0]);
      const nb::object function = member[1];
      if (!is_bound_function(function)) continue;
      if (name.starts_with("_") && name != "__call__") continue;
      if (std::ranges::find(kOfOneRank, name) != std::end(kOfOneRank)) continue;
      Refuse refuse = &refuse_next_call;
      if (name == "rebuild") refuse = &refuse_rebuild;
      if (name == "hierarchical_all_reduce") refuse = &refuse_hierarchical_all_reduce;
      all.refuse[function.ptr()] = refuse;
    }
  }
  const auto mind_all = [&](nb::handle owner) {
    const nb::object members = nb::steal(PyMapping_Values(owner.attr("__dict__").ptr()));
    for (nb::handle member : members) {
      if (is_bound_function(member)) mind(member, names_of);
    }
    return members;
  };
  for (nb::handle member : mind_all(module)) {
    if (PyType_Check(member.ptr())) mind_all(member);
  }
  give_signatures(nb::object(module.attr("_run_threads")),
                  nb::type<CommunicatorObject>().attr("barrier"));
}

}  // namespace hocket::python
