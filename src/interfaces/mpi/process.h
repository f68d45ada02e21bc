// This process's MPI: from MPI_Init to MPI_Finalize.
#pragma once

#include <memory>
#include <mutex>
#include <thread>

#include "interfaces/mpi/failure.h"
#include "interfaces/mpi/handles.h"
#include "interfaces/mpi/objects.h"

namespace hocket::mpi {

// The state of MPI in this process. It is never destroyed.
struct Process {
  enum class Phase { kBefore, kRunning, kOver };
  std::atomic<Phase> phase{Phase::kBefore};
  int thread_level = MPI_THREAD_SINGLE;
  std::thread::id main_thread;

  std::mutex joining;
  std::shared_ptr<World> world;
  // For messages of ranks that make a communicator without the other ranks; see join.h.
  std::shared_ptr<Communicator> meetings;
  std::mutex meetings_mutex;

  Handles<Comm, MPI_Comm> comms;
  Handles<Group, MPI_Group> groups;
  Handles<Type, MPI_Datatype> types;
  Handles<Op, MPI_Op> ops;
  Handles<Request, MPI_Request> requests;
  Handles<Message, MPI_Message> messages;
  Handles<Info, MPI_Info> infos;
  Handles<Errhandler, MPI_Errhandler> errhandlers;
  Handles<Session, MPI_Session> sessions;
  std::atomic<int> open_sessions{0};

  // True between MPI_Init and MPI_Finalize, and while a session is open.
  bool is_running() const noexcept { return phase == Phase::kRunning || open_sessions > 0; }

  std::mutex keyvals_mutex;
  struct KeyvalPlace {
    std::shared_ptr<Keyval> owner;  // null: the program has freed it
    std::weak_ptr<Keyval> any;
  };
  std::map<int, KeyvalPlace> keyvals;
  int next_keyval = 0x1000;
};
Process& process();

// Makes this process a rank of the job, once.
void join_job(int thread_level);
void start(int required);
void make_predefined(Process& of);

Comm& comm_of(MPI_Comm handle);  // throws MPI_ERR_COMM
std::shared_ptr<Comm> shared_comm(MPI_Comm handle);
const Datatype& type_of(MPI_Datatype handle);  // throws MPI_ERR_TYPE
Type& type_object(MPI_Datatype handle);
Group& group_of(MPI_Group handle);
Session& session_of(MPI_Session handle);  // throws MPI_ERR_SESSION
Op& op_of(MPI_Op handle);

// Waits until all calls on a communicator that this rank has begun have ended.
void wait_for_all_of(const std::shared_ptr<Comm>& comm);
void flush_sends_of(const Comm& comm);  // waits for its buffered sends

// True if the call blocks and no other thread can begin a call meanwhile. Then it may use a
// blocking call of hocket.
inline bool is_direct(How how) noexcept {
  return how == How::kBlocking && process().thread_level != MPI_THREAD_MULTIPLE;
}

}  // namespace hocket::mpi
