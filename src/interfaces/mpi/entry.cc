#include "interfaces/mpi/entry.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "hocket/exit.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/files/file.h"
#include "interfaces/mpi/windows/window.h"
#include "mpi_calls.h"

namespace hocket::mpi {

void require_running() {
  const auto phase = process().phase.load(std::memory_order_relaxed);
  if (phase == Process::Phase::kRunning || process().is_running()) return;
  fail(MPI_ERR_OTHER,
       phase == Process::Phase::kBefore ? "it was called before MPI_Init"
                                        : "it was called after MPI_Finalize");
}

void abort_job(const std::shared_ptr<Comm>& comm, const std::string& why, int code) {
  std::fprintf(stderr, "hocket: %s\n", why.c_str());
  std::fflush(nullptr);
  const int status = code > 0 && code < 256 ? code : 1;
  try {
    tell_end(why);
    announce_failure();
    if (process().world != nullptr) process().world->communicator().abort(why);
    if (comm != nullptr) comm->net->abort(why);
  } catch (const std::exception&) {  // the process ends in any case
  }
  _exit(status);
}

namespace {

// Returns the communicator whose error handler is called for an error that belongs to no object.
// Since MPI 4 this is MPI_COMM_SELF. Before MPI 4 it was MPI_COMM_WORLD, and older programs set its
// handler.
std::shared_ptr<Comm> comm_told(const Scope& scope) {
  if (auto comm = process().comms.share(scope.comm)) return comm;
  auto self = process().comms.share(MPI_COMM_SELF);
  const bool is_as_made = self->errhandler->kind == Errhandler::Kind::kFatal;
  return is_as_made ? process().comms.share(MPI_COMM_WORLD) : self;
}

}  // namespace

int tell_handler(const char* function, const Scope& scope, int code) {
  Process& p = process();
  if (!p.is_running()) {
    abort_job(nullptr, std::string(function) + ": " + text_of(code), class_of(code));
  }
  const auto session = p.sessions.share(scope.session);
  const auto comm = comm_told(scope);
  const auto window = windows().share(scope.win);
  const auto handler = scope.is_of_file     ? errhandler_of(scope.file)
                       : window != nullptr  ? window->errhandler
                       : session != nullptr ? session->errhandler
                                            : comm->errhandler;
  switch (handler->kind) {
    case Errhandler::Kind::kReturn:
      return code;
    case Errhandler::Kind::kUser: {
      int told = code;
      if (scope.is_of_file) {
        MPI_File handle = scope.file;
        handler->of_file(&handle, &told);
      } else if (window != nullptr) {
        MPI_Win handle = scope.win;
        handler->of_win(&handle, &told);
      } else if (session != nullptr) {
        MPI_Session handle = scope.session;
        handler->of_sessions(&handle, &told);
      } else {
        MPI_Comm handle = comm->handle;
        handler->function(&handle, &told);
      }
      return told;
    }
    case Errhandler::Kind::kFatal:
    case Errhandler::Kind::kAbort:
      break;
  }
  abort_job(comm,
            "rank " + std::to_string(p.world->rank()) + ": " + function + ": " + text_of(code),
            class_of(code));
}

MPI_Errhandler handle_of_errhandler(const std::shared_ptr<Errhandler>& handler) {
  switch (handler->kind) {
    case Errhandler::Kind::kFatal:
      return MPI_ERRORS_ARE_FATAL;
    case Errhandler::Kind::kAbort:
      return MPI_ERRORS_ABORT;
    case Errhandler::Kind::kReturn:
      return MPI_ERRORS_RETURN;
    case Errhandler::Kind::kUser:
      break;
  }
  return process().errhandlers.add(handler);
}

int caught(const char* function, const Scope& scope) noexcept {
  Scope told = scope;
  try {
    throw;
  } catch (const Failure& failure) {
    if (scope.comm == MPI_COMM_NULL) told.comm = failure.comm;
  } catch (...) {  // its code is found below
  }
  return tell_handler(function, told, code_of_caught());
}

int not_carried(const char* function, const Scope& scope) noexcept {
  return guarded(function, scope, [&] {
    fail(MPI_ERR_UNSUPPORTED_OPERATION,
         std::string("hocket does not carry ") + function +
             "; docs/moving/mpi.md says what it does");
  });
}

void fill(MPI_Status* status, const Outcome& outcome) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = outcome.source;
  status->MPI_TAG = outcome.tag;
  // An empty status has no error. Other calls that complete one request leave MPI_ERROR unchanged.
  if (outcome.source == MPI_ANY_SOURCE) status->MPI_ERROR = MPI_SUCCESS;
  set_bytes(*status, outcome.bytes, outcome.cancelled);
}

void complete(Pending pending, MPI_Status* status) {
  pending.wait();
  if (status != nullptr) fill(status, pending.outcome);
  if (pending.outcome.code != MPI_SUCCESS) throw Failure{pending.outcome.code};
}

void hand_out(MPI_Request* request, Pending pending, const Scope& scope) {
  auto made = std::make_shared<Request>();
  made->now = std::move(pending);
  if (Comm* const comm = process().comms.find(scope.comm)) made->comm = comm->shared_from_this();
  *request = process().requests.add(std::move(made));
}

void hand_out_polled(MPI_Request* request, std::function<bool()> poll, const Scope& scope) {
  auto made = std::make_shared<Request>();
  made->poll = std::move(poll);
  made->comm = process().comms.share(scope.comm);
  *request = process().requests.add(std::move(made));
}

void hand_out_persistent(MPI_Request* request, std::function<Pending()> begin, const Scope& scope) {
  auto made = std::make_shared<Request>();
  made->restart = std::move(begin);
  made->active = false;
  made->comm = process().comms.share(scope.comm);
  *request = process().requests.add(std::move(made));
}

namespace {
std::vector<MPI_Datatype> handles_of(const std::vector<OwnHandle<MPI_Datatype>>& owners) {
  std::vector<MPI_Datatype> made;
  for (const auto& owner : owners) made.push_back(owner.get());
  return made;
}
std::vector<OwnHandle<MPI_Datatype>> owners_of(const MPI_Datatype* types, std::size_t count) {
  std::vector<OwnHandle<MPI_Datatype>> made;
  for (std::size_t i = 0; types != nullptr && i < count; ++i) {
    made.emplace_back(types[i], process().types);
  }
  return made;
}
}  // namespace
OwnTypes::OwnTypes(const MPI_Datatype* types, std::size_t count)
    : owners_(owners_of(types, count)), handles_(handles_of(owners_).data(), owners_.size()) {}

ArrayLengths lengths_among_all(MPI_Comm comm, const void* sendbuf) {
  const std::size_t peers = comm_of(comm).peers().members.size();
  return {.sent = sendbuf == MPI_IN_PLACE ? 0 : peers, .received = peers};
}

ArrayLengths lengths_of_members(MPI_Comm comm) {
  const std::size_t members = comm_of(comm).local->members.size();
  return {.sent = members, .received = members};
}

ArrayLengths lengths_at_root(MPI_Comm comm, int root) {
  const Comm& c = comm_of(comm);
  if (root != (c.is_inter() ? MPI_ROOT : c.rank)) return {};
  const std::size_t peers = c.peers().members.size();
  return {.sent = peers, .received = peers};
}

ArrayLengths lengths_of_neighbours(MPI_Comm comm) {
  const Comm& c = comm_of(comm);
  if (c.topology == nullptr) return {};
  return {.sent = c.topology->destinations.size(), .received = c.topology->sources.size()};
}

}  // namespace hocket::mpi

// --- Error handlers ------------------------------------------------------------------------------

namespace hocket::mpi::call {

void Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* errhandler) {
  *errhandler = process().errhandlers.add(std::make_shared<Errhandler>(
      Errhandler{.kind = Errhandler::Kind::kUser, .function = function}));
}
void Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
  Comm& c = comm_of(comm);
  auto handler = process().errhandlers.share(errhandler);
  require(handler != nullptr, MPI_ERR_ERRHANDLER, "errhandler is no error handler");
  require(handler->kind != Errhandler::Kind::kUser || handler->function != nullptr,
          MPI_ERR_ERRHANDLER,
          "errhandler is not one of communicators");
  c.errhandler = std::move(handler);
}
void Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* errhandler) {
  *errhandler = handle_of_errhandler(comm_of(comm).errhandler);
}
void Errhandler_create(MPI_Comm_errhandler_function* function, MPI_Errhandler* errhandler) {
  Comm_create_errhandler(function, errhandler);
}
void Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler) {
  Comm_set_errhandler(comm, errhandler);
}
void Errhandler_get(MPI_Comm comm, MPI_Errhandler* errhandler) {
  Comm_get_errhandler(comm, errhandler);
}
void Errhandler_free(MPI_Errhandler* errhandler) {
  require(process().errhandlers.find(*errhandler) != nullptr,
          MPI_ERR_ERRHANDLER,
          "errhandler is no error handler");
  process().errhandlers.remove(*errhandler);
  *errhandler = MPI_ERRHANDLER_NULL;
}
void Comm_call_errhandler(MPI_Comm comm, int errorcode) {
  comm_of(comm);
  tell_handler("MPI_Comm_call_errhandler", Scope{comm}, errorcode);
}

}  // namespace hocket::mpi::call
