// Python's Communicator: its ranks, the groups made from it, its failure and its end.
#include <nanobind/stl/string.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>

#include "docstrings.h"
#include "errors.h"
#include "hocket/admission.h"
#include "hocket/audit.h"
#include "verbs.h"

namespace hocket::python {
namespace {

// Closes a communicator. The world ends when the last of its communicators is closed.
void close_communicator(CommunicatorObject& self) {
  std::shared_ptr<World> world = std::move(self.world);
  self.is_closed = true;
  without_gil([&] {
    std::exception_ptr untold;
    try {
      self.comm.close();
    } catch (const Error&) {
      untold = std::current_exception();
    }
    world.reset();
    if (untold) std::rethrow_exception(untold);
  });
}

// Returns true if this rank leaves its world by closing this communicator. After the `with` block
// of any other communicator, the program may go on with this world.
bool leaves_world(const CommunicatorObject& self) {
  return self.world &&
         (self.world.use_count() == 1 || self.comm.name() == self.world->communicator().name());
}

// Implements `__exit__`: closes the communicator. If an exception ends the `with` block, the other
// ranks are told its reason. An error of closing must not replace that exception.
void leave_block(nb::handle object, nb::args exception) {
  CommunicatorObject& self = nb::cast<CommunicatorObject&>(object);
  if (exception.size() == 0 || exception[0].is_none()) return close_communicator(self);
  if (leaves_world(self) && exception.size() > 1) {
    const nb::object why =
        nb::module_::import_("hocket._jobs.ending").attr("reason_of")(exception[1]);
    if (const auto text = nb::cast<std::string>(why); !text.empty()) self.world->tell_end(text);
  }
  try {
    close_communicator(self);
  } catch (const Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    PyErr_WriteUnraisable(object.ptr());
  }
}

// A context manager: errors name the calls inside it as parts of one call, `whole`.
struct NamedCalls {
  nb::object communicator;
  std::string whole;
  std::unique_ptr<WholeCall> scope;

  void enter() {
    scope = std::make_unique<WholeCall>(nb::cast<CommunicatorObject&>(communicator).comm, whole);
  }
};

nb::tuple to_tuple(std::span<const int> numbers) {
  nb::list list;
  for (const int number : numbers) list.append(number);
  return nb::tuple(list);
}

CommunicatorObject child(const CommunicatorObject& parent, Communicator comm) {
  CommunicatorObject made{std::move(comm), parent.world};
  made.allows_pickle = parent.allows_pickle;
  return made;
}

std::string repr(const CommunicatorObject& self) {
  std::string name = "<hocket.Communicator \"" + self.comm.name() + "\"";
  if (self.is_closed) name += ", closed";
  if (!self.comm.is_member()) return name + ", not a member>";
  return name + ", rank " + std::to_string(self.comm.rank()) + " of " +
         std::to_string(self.comm.size()) + ">";
}

void bind_facts(CommunicatorClass& cls) {
  cls.def_prop_ro(
      "rank",
      [](const CommunicatorObject& s) { return s.comm.rank(); },
      nb::sig("def rank(self) -> int"),
      "This process's number, from 0; -1 if it is not a member.");
  cls.def_prop_ro(
      "size",
      [](const CommunicatorObject& s) { return s.comm.size(); },
      nb::sig("def size(self) -> int"),
      "Number of ranks.");
  cls.def_prop_ro(
      "is_member",
      [](const CommunicatorObject& s) { return s.comm.is_member(); },
      nb::sig("def is_member(self) -> bool"),
      "Whether this process has a rank here.");
  cls.def_prop_ro(
      "name",
      [](const CommunicatorObject& s) { return to_text(s.comm.name()); },
      nb::sig("def name(self) -> str"),
      "The name in error messages; \"world\" for the first.");
  cls.def_prop_ro(
      "world_ranks",
      [](const CommunicatorObject& s) { return to_tuple(s.comm.world_ranks()); },
      nb::sig("def world_ranks(self) -> tuple[int, ...]"),
      "The rank in the world of each member, in order.");
  cls.def_prop_ro(
      "hosts",
      [](const CommunicatorObject& s) { return to_tuple(s.comm.hosts()); },
      nb::sig("def hosts(self) -> tuple[int, ...]"),
      "The number, from 0, of the host of each member, in order.");
  cls.def(
      "__repr__", [](const CommunicatorObject& s) { return to_text(repr(s)); }, nb::lock_self());
}

RebuildOptions rebuild_options(nb::handle deadline,
                               nb::handle exclude_missing,
                               nb::handle allow_minority) {
  return {.deadline = limit_argument(deadline, "deadline"),
          .exclude_missing = flag_argument(exclude_missing, "exclude_missing"),
          .allow_minority = flag_argument(allow_minority, "allow_minority")};
}

CommunicatorObject admit(CommunicatorObject& self,
                         nb::handle newcomers,
                         nb::handle patience,
                         nb::handle keep_ranks,
                         nb::handle deadline,
                         nb::handle exclude_missing,
                         nb::handle allow_minority) {
  const auto read = [&] {
    return AdmitOptions{.newcomers = integer_argument(newcomers, "newcomers"),
                        .patience = duration_argument(patience, "patience"),
                        .keep_ranks = flag_argument(keep_ranks, "keep_ranks"),
                        .rebuild = rebuild_options(deadline, exclude_missing, allow_minority)};
  };
  const AdmitOptions options = read_arguments(self, read, &refuse_rebuild);
  // Uses a Communicator of its own, because another thread may use `self` while the GIL is
  // released.
  Communicator members(self.comm.impl());
  std::shared_ptr<World> world;
  try {
    world = without_gil([&] {
      auto made = std::make_shared<World>(hocket::admit(members, options));
      const Communicator last(std::move(members));
      return made;
    });
  } catch (...) {
    self.comm = std::move(members);
    throw;
  }
  CommunicatorObject made{Communicator(world->communicator().impl()), std::move(world)};
  made.allows_pickle = self.allows_pickle;
  return made;
}

// Returns the world of a communicator. Throws InvalidArgument if its ranks are threads.
const World& world_of(const CommunicatorObject& self, const char* what) {
  if (self.world) return *self.world;
  throw InvalidArgument(std::string(what) + ": ranks that are threads take no newcomers in");
}

void bind_admission(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "admit",
      &admit,
      arg("newcomers").none() = 1,
      arg("patience") = nb::none(),
      nb::kw_only(),
      arg("keep_ranks").none() = true,
      arg("deadline") = nb::none(),
      arg("exclude_missing").none() = false,
      arg("allow_minority").none() = false,
      nb::sig("def admit(self, newcomers: int = 1, patience: Timeout = None, *, "
              "keep_ranks: bool = True, deadline: Timeout = None, exclude_missing: bool = False, "
              "allow_minority: bool = False) -> Communicator"),
      docstring_of("Communicator.admit"));
  cls.def_prop_ro(
      "door",
      [](const CommunicatorObject& s) { return to_text(world_of(s, "door").launch().door); },
      nb::sig("def door(self) -> str"),
      "The address where newcomers wait for `admit`; they pass it to `hocket.init(join=...)`.");
  cls.def_prop_ro(
      "newcomers",
      [](const CommunicatorObject& s) {
        return to_tuple(world_of(s, "newcomers").launch().newcomers);
      },
      nb::sig("def newcomers(self) -> tuple[int, ...]"),
      "The newcomers of the `admit` that made this world: their ranks in it, in order.");
}

void bind_children(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "new_group",
      [](CommunicatorObject& s, nb::handle ranks, nb::handle deadline) {
        CallOptions options;
        const std::vector<int> members = read_arguments(s, [&] {
          options = {limit_argument(deadline, "deadline")};
          std::vector<int> read;
          require_iterable(ranks, "ranks", "a list of ranks");
          for (nb::handle rank : ranks) read.push_back(integer_argument(rank, "a rank of ranks"));
          return read;
        });
        return child(s, without_gil([&] { return s.comm.new_group(members, options); }));
      },
      arg("ranks").none(),
      arg("deadline") = nb::none(),
      nb::sig(
          "def new_group(self, ranks: Iterable[int], deadline: Timeout = None) -> Communicator"),
      docstring_of("Communicator.new_group"));
  cls.def(
      "grid",
      [](nb::handle self, nb::handle shape, nb::handle periodic) {
        return nb::object(nb::module_::import_("hocket.grid").attr("Grid")(self, shape, periodic));
      },
      arg("shape").none(),
      arg("periodic").none() = false,
      nb::sig("def grid(self, shape: Sequence[int], "
              "periodic: Union[bool, Sequence[bool]] = False) -> Grid"),
      "The ranks as a grid; see `hocket.Grid`. Local: it communicates with no other rank.");
  cls.def(
      "split",
      [](CommunicatorObject& s, nb::handle color, nb::handle key, nb::handle deadline) {
        CallOptions options;
        const SplitOptions parts = read_arguments(s, [&] {
          options = {limit_argument(deadline, "deadline")};
          return SplitOptions{.color = integer_argument(color, "color"),
                              .key = integer_argument(key, "key")};
        });
        return child(s, without_gil([&] { return s.comm.split(parts, options); }));
      },
      arg("color").none(),
      arg("key").none() = 0,
      arg("deadline") = nb::none(),
      nb::sig(
          "def split(self, color: int, key: int = 0, deadline: Timeout = None) -> Communicator"),
      docstring_of("Communicator.split"));
  cls.def(
      "duplicate",
      [](CommunicatorObject& s, nb::handle deadline) {
        const CallOptions options =
            read_arguments(s, [&] { return CallOptions{limit_argument(deadline, "deadline")}; });
        return child(s, without_gil([&] { return s.comm.duplicate(options); }));
      },
      arg("deadline") = nb::none(),
      nb::sig("def duplicate(self, deadline: Timeout = None) -> Communicator"),
      "Make a communicator of the same ranks, whose calls run independently of this one's.");
  cls.def_prop_ro(
      "intra_node",
      [](CommunicatorObject& s) {
        return child(s, without_gil([&] { return Communicator(s.comm.intra_node().impl()); }));
      },
      nb::sig("def intra_node(self) -> Communicator"),
      "The members on this rank's host. The first use makes it, which is a collective call.");
  cls.def_prop_ro(
      "inter_node",
      [](CommunicatorObject& s) {
        return child(s, without_gil([&] { return Communicator(s.comm.inter_node().impl()); }));
      },
      nb::sig("def inter_node(self) -> Communicator"),
      docstring_of("Communicator.inter_node"));
}

void bind_rebuild(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "rebuild",
      [](CommunicatorObject& s,
         nb::handle deadline,
         nb::handle exclude_missing,
         nb::handle allow_minority) {
        const auto read = [&] {
          return rebuild_options(deadline, exclude_missing, allow_minority);
        };
        const RebuildOptions options = read_arguments(s, read, &refuse_rebuild);
        return child(s, without_gil([&] { return s.comm.rebuild(options); }));
      },
      arg("deadline") = nb::none(),
      nb::kw_only(),
      arg("exclude_missing").none() = false,
      arg("allow_minority").none() = false,
      nb::sig("def rebuild(self, deadline: Timeout = None, *, exclude_missing: bool = False, "
              "allow_minority: bool = False) -> Communicator"),
      docstring_of("Communicator.rebuild"));
  cls.def_prop_ro(
      "epoch",
      [](const CommunicatorObject& s) { return s.comm.epoch(); },
      nb::sig("def epoch(self) -> int"),
      "How often it has been rebuilt: 0 for the first.");
}

void bind_failure(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "abort",
      [](CommunicatorObject& s, nb::handle reason) {
        const std::string text = words_argument(reason, "reason");
        without_gil([&] { s.comm.abort(text); });
      },
      arg("reason").none() = "",
      nb::sig("def abort(self, reason: str = '') -> None"),
      docstring_of("Communicator.abort"));
  cls.def(
      "refuse",
      [](CommunicatorObject& s, nb::handle reason) {
        const std::string text =
            read_arguments(s, [&] { return words_argument(reason, "reason"); });
        without_gil([&] { s.comm.refuse(text); });
      },
      arg("reason").none(),
      nb::sig("def refuse(self, reason: str) -> NoReturn"),
      docstring_of("Communicator.refuse"));
  cls.def_prop_ro(
      "status",
      [](const CommunicatorObject& s) -> nb::object {
        const std::optional<Status> status = without_gil([&] { return s.comm.status(); });
        return status ? to_python(*status) : nb::none();
      },
      nb::sig("def status(self) -> Optional[Status]"),
      "The error that ended this communicator; None while it works.");
}

void bind_settings(CommunicatorClass& cls) {
  cls.def_prop_rw(
      "deadline",
      [](const CommunicatorObject& s) {
        const Duration deadline = s.comm.deadline();
        return deadline == kForever ? std::numeric_limits<double>::infinity()
                                    : std::chrono::duration<double>(deadline).count();
      },
      [](CommunicatorObject& s, nb::handle seconds) {
        s.comm.set_deadline(limit_argument(seconds, "deadline").value_or(s.first_deadline));
      },
      nb::for_getter(nb::sig("def deadline(self) -> float")),
      nb::for_setter(nb::arg("seconds").none()),
      nb::for_setter(nb::sig("def deadline(self, seconds: Timeout) -> None")),
      docstring_of("Communicator.deadline"));
  cls.def_prop_rw(
      "allow_pickle",
      [](const CommunicatorObject& s) { return s.allows_pickle; },
      [](CommunicatorObject& s, nb::handle allow) {
        s.allows_pickle = flag_argument(allow, "allow_pickle");
      },
      nb::for_getter(nb::sig("def allow_pickle(self) -> bool")),
      nb::for_setter(nb::arg("allow").none()),
      nb::for_setter(nb::sig("def allow_pickle(self, allow: bool) -> None")),
      docstring_of("Communicator.allow_pickle"));
  cls.def_prop_rw(
      "audit",
      [](const CommunicatorObject& s) { return is_audited(s.comm); },
      [](CommunicatorObject& s, nb::handle audit) {
        const bool is_kept = flag_argument(audit, "audit");
        without_gil([&] { set_audited(s.comm, is_kept); });
      },
      nb::for_getter(nb::sig("def audit(self) -> bool")),
      nb::for_setter(nb::arg("audit").none()),
      nb::for_setter(nb::sig("def audit(self, audit: bool) -> None")),
      docstring_of("Communicator.audit"));
}

void bind_tasks(CommunicatorClass& cls) {
  cls.def(
      "_named",
      [](nb::handle self, std::string whole) {
        return NamedCalls{nb::borrow(self), std::move(whole), {}};
      },
      nb::arg("whole"),
      nb::sig("def _named(self, whole: str) -> _NamedCalls"),
      "A context in which errors name this rank's calls as `whole`, which consists of them.");
  cls.def(
      "_begin_task",
      [](CommunicatorObject& s, std::uint32_t number) { s.comm.begin_task(number); },
      nb::arg("number"),
      nb::sig("def _begin_task(self, number: int) -> None"),
      "Announce that this rank begins a task, which all ranks are given.");
  cls.def(
      "_end_task",
      [](CommunicatorObject& s) { return s.comm.end_task(); },
      nb::sig("def _end_task(self) -> bool"),
      R"(Tell the others that this rank has ended the task. While calls are under way, returns False and tells
nothing.)");
}

void bind_reports(CommunicatorClass& cls) {
  cls.def(
      "last_calls",
      [](const CommunicatorObject& s) { return to_list(s.comm.last_calls()); },
      nb::sig("def last_calls(self) -> list[RankCall]"),
      "The last call of each rank, as far as this rank can see.");
  cls.def(
      "recent_calls",
      [](const CommunicatorObject& s) { return to_list(s.comm.recent_calls()); },
      nb::sig("def recent_calls(self) -> list[RankCall]"),
      "This rank's last calls, oldest first.");
  cls.def(
      "dump",
      [](const CommunicatorObject& s, nb::handle directory) {
        std::string name;
        if (!directory.is_none()) name = path_argument(directory, "directory");
        const std::string file = without_gil([&] { return s.comm.dump(name); });
        return nb::steal<nb::str>(
            PyUnicode_DecodeFSDefaultAndSize(file.data(), static_cast<Py_ssize_t>(file.size())));
      },
      nb::arg("directory") = nb::none(),
      nb::sig("def dump(self, directory: Optional[Union[str, PathLike[str]]] = None) -> str"),
      docstring_of("Communicator.dump"));
}

void bind_end(CommunicatorClass& cls) {
  cls.def("close",
          &close_communicator,
          nb::lock_self(),
          nb::sig("def close(self) -> None"),
          docstring_of("Communicator.close"));
  cls.def(
      "__enter__",
      [](nb::handle self) { return nb::borrow(self); },
      nb::sig("def __enter__(self) -> Communicator"));
  cls.def("__exit__", &leave_block, nb::sig("def __exit__(self, *exc_info: object) -> None"));
}

}  // namespace

CommunicatorClass bind_communicator(nb::module_& module) {
  CommunicatorClass cls(
      module, "Communicator", nb::is_weak_referenceable(), docstring_of("Communicator"));
  nb::class_<NamedCalls>(module, "_NamedCalls")
      .def("__enter__", &NamedCalls::enter, nb::sig("def __enter__(self) -> None"))
      .def(
          "__exit__",
          [](NamedCalls& self, nb::args) { self.scope.reset(); },
          nb::sig("def __exit__(self, *exc_info: object) -> None"));
  bind_facts(cls);
  bind_children(cls);
  bind_admission(cls);
  bind_rebuild(cls);
  bind_failure(cls);
  bind_settings(cls);
  bind_tasks(cls);
  bind_reports(cls);
  bind_end(cls);
  return cls;
}

}  // namespace hocket::python
