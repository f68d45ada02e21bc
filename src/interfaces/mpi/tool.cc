#include "interfaces/mpi/tool.h"

#include <mutex>
#include <set>

namespace hocket::mpi::tool {
namespace {

struct State {
  std::mutex mutex;
  int users = 0;  // number of MPI_T_init_thread calls less MPI_T_finalize calls
  std::intptr_t last_session = 0;
  std::set<MPI_T_pvar_session> sessions;
};
State& state() {
  static State& made = *new State();  // NOLINT: it outlives whatever the program destroys
  return made;
}

// Calls `act` with the state under its lock, and returns the code of `act`.
template <typename F>
int with_state(F act) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  return all.users == 0 ? MPI_T_ERR_NOT_INITIALIZED : act(all);
}

int for_all_handles(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return refuse_in(session,
                   handle == MPI_T_PVAR_ALL_HANDLES ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE);
}

}  // namespace

int init_thread(int required, int* provided) {
  if (provided == nullptr) return MPI_T_ERR_INVALID;
  const std::lock_guard lock(state().mutex);
  ++state().users;
  *provided = required;
  return MPI_SUCCESS;
}
int finalize() {
  return with_state([](State& all) {
    if (--all.users == 0) all.sessions.clear();
    return MPI_SUCCESS;
  });
}

int category_changed(int* update_number) { return give_none(update_number); }

int pvar_session_create(MPI_T_pvar_session* session) {
  if (session == nullptr) return MPI_T_ERR_INVALID;
  return with_state([&](State& all) {
    *session = reinterpret_cast<MPI_T_pvar_session>(++all.last_session);  // NOLINT: a number
    all.sessions.insert(*session);
    return MPI_SUCCESS;
  });
}
int pvar_session_free(MPI_T_pvar_session* session) {
  if (session == nullptr) return MPI_T_ERR_INVALID;
  return with_state([&](State& all) {
    if (all.sessions.erase(*session) == 0) return MPI_T_ERR_INVALID_SESSION;
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
  });
}
int pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return for_all_handles(session, handle);
}
int pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return for_all_handles(session, handle);
}
int pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return for_all_handles(session, handle);
}

int give_none(int* count) {
  if (count == nullptr) return MPI_T_ERR_INVALID;
  return with_state([&](State&) {
    *count = 0;
    return MPI_SUCCESS;
  });
}
int refuse(int code) {
  return with_state([&](State&) { return code; });
}
int refuse_in(MPI_T_pvar_session session, int code) {
  return with_state([&](State& all) {
    return all.sessions.count(session) == 0 ? MPI_T_ERR_INVALID_SESSION : code;
  });
}

}  // namespace hocket::mpi::tool
