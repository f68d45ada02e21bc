// The vectorcall slot (PEP 590) of a function of the module points here, and this calls nanobind's.
// Calls without keywords pay for two branches.
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

// Python's `vectorcallfunc`, which its stable interface has only since 3.12.
using Vectorcall = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);

// Python's PyVectorcall_NARGS, which the stable interface also has only since 3.12. The highest bit
// is a flag: the place before the arguments may be written (PEP 590).
constexpr std::size_t count_of(std::size_t count_and_flag) noexcept {
  return count_and_flag & ~(std::size_t{1} << (8 * sizeof(std::size_t) - 1));
}

constexpr std::size_t kSlots = 8;  // nanobind has six ways of being called

// Facts about the functions. Written while the module is made, under the GIL.
struct KnownFunctions {
  std::array<Vectorcall, kSlots> originals{};
  // The one of the two words that a function takes, if any.
  std::unordered_map<PyObject*, PyObject*> word;
  // For collective calls: the way to tell other ranks of a refused call.
  std::unordered_map<PyObject*, Refuse> refuse;
  PyObject* deadline = nullptr;
  PyObject* timeout = nullptr;
};

KnownFunctions& known() {
  static auto* const known = new KnownFunctions;  // outlives the interpreter's end
  return *known;
}

bool is_word(PyObject* name, PyObject* word) {
  return name == word || PyUnicode_Compare(name, word) == 0;
}

// `names` with the word that the function takes in the place of the other one; null: they have none
// such. Gives a new reference.
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

// Methods of a communicator that no other rank waits for.
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

// Null, too, where its `__init__` has not been called.
CommunicatorObject* seat_of(nb::handle self) {
  const bool is_ours = nb::isinstance<CommunicatorObject>(self) ||
                       nb::isinstance<Symmetric>(self) || nb::isinstance<PreparedHandle>(self);
  if (!is_ours || !nb::inst_ready(self)) return nullptr;
  if (nb::isinstance<CommunicatorObject>(self)) return &nb::cast<CommunicatorObject&>(self);
  if (nb::isinstance<Symmetric>(self)) return &nb::cast<Symmetric&>(self).self;
  if (nb::isinstance<PreparedHandle>(self)) {
    return &nb::cast<CommunicatorObject&>(nb::cast<PreparedHandle&>(self).comm);
  }
  return nullptr;
}

// Nanobind says so before it calls a function whose arguments are others.
bool was_called(const nb::python_error& error) {
  const std::string_view text = error.what();
  return text.find("(): incompatible function arguments.") == std::string_view::npos;
}

// Raises a TypeError that names the argument which is missing, surplus or unknown. `count`: of the
// arguments without names.
void explain(PyObject* function, std::size_t count, PyObject* names) {
  nb::module_::import_("hocket._calls.keywords")
      .attr("explain")(nb::handle(function),
                       count,
                       names == nullptr ? nb::object(nb::tuple()) : nb::borrow(names));
}

// Handles a call that failed: raises the TypeError that is set, or a better one. Tells the ranks of
// a collective call if the call was not made.
void answer(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
  try {
    const nb::python_error before;  // takes it
    if (was_called(before)) throw before;
    const auto refuse = known().refuse.find(function);
    CommunicatorObject* const self =
        refuse == known().refuse.end() || count == 0 ? nullptr : seat_of(arguments[0]);
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

// The place where nanobind's functions keep their caller's address: the first member. The value is
// checked, as nanobind does not promise this layout.
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
    if (slot == kCalls[i]) return;  // under another name
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

// Nanobind's types have no `__signature__`, and cannot be given any but by their dictionary.
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
