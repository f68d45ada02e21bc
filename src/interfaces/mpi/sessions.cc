// Sessions let a process use MPI before, beside or without MPI_Init. All sessions of a process
// share its job.
#include <strings.h>

#include <array>
#include <cstring>
#include <numeric>

#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/process.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

constexpr std::array<const char*, 2> kProcessSets{"mpi://WORLD", "mpi://SELF"};

std::shared_ptr<Errhandler> handler_of_sessions(MPI_Errhandler handle) {
  auto handler = process().errhandlers.share(handle);
  require(handler != nullptr, MPI_ERR_ERRHANDLER, "errhandler is no error handler");
  require(handler->kind != Errhandler::Kind::kUser || handler->of_sessions != nullptr,
          MPI_ERR_ERRHANDLER,
          "errhandler is not one of sessions");
  return handler;
}

// Returns the group of a process set. Names of process sets are URIs, so their case does not
// matter.
Group group_named(const char* name) {
  const int rank = process().world->rank();
  if (::strcasecmp(name, "mpi://SELF") == 0) return Group{{rank}};
  require(::strcasecmp(name, "mpi://WORLD") == 0,
          MPI_ERR_ARG,
          "pset_name is no process set; there are mpi://WORLD and mpi://SELF");
  std::vector<int> all(static_cast<std::size_t>(process().world->size()));
  std::iota(all.begin(), all.end(), 0);
  return Group{std::move(all)};
}

}  // namespace

Session& session_of(MPI_Session handle) {
  Session* found = process().sessions.find(handle);
  require(found != nullptr, MPI_ERR_SESSION, "session is no session");
  return *found;
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Session_init(MPI_Info, MPI_Errhandler errhandler, MPI_Session* session) {
  join_job(MPI_THREAD_MULTIPLE);
  auto made = std::make_shared<Session>();
  made->errhandler = handler_of_sessions(errhandler);
  *session = process().sessions.add(std::move(made));
  ++process().open_sessions;
}
void Session_finalize(MPI_Session* session) {
  session_of(*session);
  process().sessions.remove(*session);
  *session = MPI_SESSION_NULL;
  --process().open_sessions;
}

void Session_get_info(MPI_Session session, MPI_Info* info_used) {
  session_of(session);
  auto made = std::make_shared<Info>();
  made->set("thread_level", "MPI_THREAD_MULTIPLE");
  *info_used = process().infos.add(std::move(made));
}
void Session_get_num_psets(MPI_Session session, MPI_Info, int* npset_names) {
  session_of(session);
  *npset_names = static_cast<int>(kProcessSets.size());
}
void Session_get_nth_pset(MPI_Session session, MPI_Info, int n, int* pset_len, char* pset_name) {
  session_of(session);
  require(n >= 0 && n < static_cast<int>(kProcessSets.size()),
          MPI_ERR_ARG,
          "n is the number of no process set");
  const std::string name = kProcessSets[static_cast<std::size_t>(n)];
  if (*pset_len > 0) {
    const std::string cut = name.substr(0, static_cast<std::size_t>(*pset_len) - 1);
    std::memcpy(pset_name, cut.c_str(), cut.size() + 1);
  }
  *pset_len = static_cast<int>(name.size() + 1);
}
void Session_get_pset_info(MPI_Session session, const char* pset_name, MPI_Info* info) {
  session_of(session);
  auto made = std::make_shared<Info>();
  made->set("mpi_size", std::to_string(group_named(pset_name).members.size()));
  *info = process().infos.add(std::move(made));
}
void Group_from_session_pset(MPI_Session session, const char* pset_name, MPI_Group* newgroup) {
  session_of(session);
  Group made = group_named(pset_name);
  made.session = process().sessions.share(session);
  *newgroup = process().groups.add(std::make_shared<Group>(std::move(made)));
}

// --- Error handlers ------------------------------------------------------------------------------

void Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                               MPI_Errhandler* errhandler) {
  Errhandler made{.kind = Errhandler::Kind::kUser};
  made.of_sessions = session_errhandler_fn;
  *errhandler = process().errhandlers.add(std::make_shared<Errhandler>(made));
}
void Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler) {
  session_of(session).errhandler = handler_of_sessions(errhandler);
}
void Session_get_errhandler(MPI_Session session, MPI_Errhandler* errhandler) {
  *errhandler = handle_of_errhandler(session_of(session).errhandler);
}
void Session_call_errhandler(MPI_Session session, int errorcode) {
  session_of(session);
  tell_handler("MPI_Session_call_errhandler", Scope{.session = session}, errorcode);
}

}  // namespace hocket::mpi::call
