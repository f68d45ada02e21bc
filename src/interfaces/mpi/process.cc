#include "interfaces/mpi/process.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "hocket/exit.h"
#include "hocket/hocket.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/entry.h"
#include "mpi_calls.h"

namespace hocket::mpi {

Process& process() {
  static Process& made = *new Process();  // NOLINT: it outlives whatever the program destroys
  return made;
}

void make_predefined(Process& of) {
  for (std::size_t i = 0; i < kNamedDatatypeCount; ++i) {
    const auto kind = kind_named(kNamedDatatypes[i].name);
    if (!kind) continue;
    of.types.add_predefined(kNamedDatatypes[i].handle,
                            std::make_shared<Type>(Type{.type = predefined(*kind),
                                                        .name = kNamedDatatypes[i].name,
                                                        .committed = true,
                                                        .is_predefined = true}));
  }
  for (std::size_t i = 0; i < kNamedOpCount; ++i) {
    of.ops.add_predefined(kNamedOps[i].handle,
                          std::make_shared<Op>(Op{.predefined = static_cast<int>(i)}));
  }
  const std::pair<MPI_Errhandler, Errhandler::Kind> handlers[] = {
      {MPI_ERRORS_ARE_FATAL, Errhandler::Kind::kFatal},
      {MPI_ERRORS_ABORT, Errhandler::Kind::kAbort},
      {MPI_ERRORS_RETURN, Errhandler::Kind::kReturn}};
  for (const auto& [handle, kind] : handlers) {
    of.errhandlers.add_predefined(handle, std::make_shared<Errhandler>(Errhandler{.kind = kind}));
  }
  of.groups.add_predefined(MPI_GROUP_EMPTY, std::make_shared<Group>());
  auto no_process = std::make_shared<Message>();
  no_process->is_null = true;
  of.messages.add_predefined(MPI_MESSAGE_NO_PROC, std::move(no_process));
  of.infos.add_predefined(MPI_INFO_ENV, std::make_shared<Info>());
}

void join_job(int thread_level) {
  Process& p = process();
  const std::lock_guard lock(p.joining);
  p.thread_level = std::max(p.thread_level, thread_level);
  if (p.world != nullptr) return;
  p.world = std::make_shared<World>(init({.deadline = kForever}));
  p.world->leave_at_exit();
  make_predefined(p);
  add_first_communicators(p);
}

void start(int required) {
  Process& p = process();
  if (p.phase != Process::Phase::kBefore) {
    fail(MPI_ERR_OTHER, "MPI has been initialized already, which is done once");
  }
  join_job(required);
  p.main_thread = std::this_thread::get_id();
  p.phase = Process::Phase::kRunning;
}

// Ends MPI here. Waits for the other ranks first, because their calls in progress would fail if
// this rank left.
void stop() {
  Process& p = process();
  Comm& world = comm_of(MPI_COMM_WORLD);
  delete_attributes(comm_of(MPI_COMM_SELF));
  try {
    world.net->barrier();
  } catch (const Error&) {  // a rank is lost, so there is no need to wait
  }
  p.phase = Process::Phase::kOver;
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {
namespace {

void copy_text(const std::string& text, char* place, int* length, std::size_t room) {
  const std::string cut = text.substr(0, room - 1);
  std::memcpy(place, cut.c_str(), cut.size() + 1);
  *length = static_cast<int>(cut.size());
}

}  // namespace

void Init(int*, char***) { start(MPI_THREAD_SINGLE); }
void Init_thread(int*, char***, int required, int* provided) {
  start(required);
  *provided = required;
}
void Finalize() { stop(); }
void Initialized(int* flag) { *flag = process().phase != Process::Phase::kBefore; }
void Finalized(int* flag) { *flag = process().phase == Process::Phase::kOver; }
void Query_thread(int* provided) { *provided = process().thread_level; }
void Is_thread_main(int* flag) { *flag = process().main_thread == std::this_thread::get_id(); }

void Abort(MPI_Comm comm, int errorcode) {
  abort_job(shared_comm(comm), "MPI_Abort was called with " + std::to_string(errorcode), errorcode);
}

void Get_version(int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
}
void Get_library_version(char* version, int* resultlen) {
  copy_text("hocket " HOCKET_VERSION ", the MPI interface of hocket",
            version,
            resultlen,
            MPI_MAX_LIBRARY_VERSION_STRING);
}
void Get_processor_name(char* name, int* resultlen) {
  char found[256] = {};
  if (gethostname(found, sizeof found - 1) != 0) std::strcpy(found, "localhost");
  copy_text(found, name, resultlen, MPI_MAX_PROCESSOR_NAME);
}
#ifndef HOCKET_MPI_MPICH
void Abi_get_version(int* abi_major, int* abi_minor) {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
}
#else
void Abi_get_version(int* abi_major, int* abi_minor) { *abi_major = *abi_minor = -1; }
#endif
void Abi_get_info(MPI_Info* info) {
  auto made = std::make_shared<Info>();
  made->set("mpi_aint_size", std::to_string(sizeof(MPI_Aint)));
  made->set("mpi_count_size", std::to_string(sizeof(MPI_Count)));
  made->set("mpi_offset_size", std::to_string(sizeof(MPI_Offset)));
  *info = process().infos.add(std::move(made));
}

double Wtime() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double Wtick() { return 1e-9; }
MPI_Aint Aint_add(MPI_Aint base, MPI_Aint disp) { return base + disp; }
MPI_Aint Aint_diff(MPI_Aint addr1, MPI_Aint addr2) { return addr1 - addr2; }
void Address(void* location, MPI_Aint* address) { Get_address(location, address); }
void Get_address(const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
}

void Alloc_mem(MPI_Aint size, MPI_Info, void* baseptr) {
  require(size >= 0, MPI_ERR_ARG, "size is negative");
  void* made = std::aligned_alloc(64, (static_cast<std::size_t>(size) + 63) / 64 * 64);
  if (made == nullptr && size > 0) throw std::bad_alloc();
  std::memcpy(baseptr, &made, sizeof made);
}
void Free_mem(void* base) { std::free(base); }
// There is no Fortran interface.
void Abi_get_fortran_info(MPI_Info* info) { *info = MPI_INFO_NULL; }
// Returns an empty list, because MPI has no names for the hardware that hocket knows of.
void Get_hw_resource_info(MPI_Info* hw_info) {
  *hw_info = process().infos.add(std::make_shared<Info>());
}
void Pcontrol(const int, ...) {}

}  // namespace hocket::mpi::call
