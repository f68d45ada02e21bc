// The objects behind a program's handles.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hocket/group.h"
#include "interfaces/mpi/abi.h"
#include "interfaces/mpi/pending.h"
#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {

struct Session;

// A value: processes, by their ranks in MPI_COMM_WORLD.
struct Group {
  std::vector<int> members;
  std::shared_ptr<Session> session = {};  // of a group that a session named
  int find(int process) const noexcept;   // MPI_UNDEFINED: not in it
};

struct Info {
  std::vector<std::pair<std::string, std::string>> entries;  // in the order of their setting
  const std::string* find(const std::string& key) const noexcept;
  void set(const std::string& key, const std::string& value);
};

struct Errhandler {
  enum class Kind { kFatal, kAbort, kReturn, kUser } kind = Kind::kFatal;
  MPI_Comm_errhandler_function* function = nullptr;
  MPI_Session_errhandler_function* of_sessions = nullptr;
  MPI_File_errhandler_function* of_file = nullptr;
  MPI_Win_errhandler_function* of_win = nullptr;
};

struct BufferedSends;

struct Session {
  std::shared_ptr<Errhandler> errhandler;
  std::shared_ptr<BufferedSends> buffered;  // where it has a buffer of its own
};

// Attributes of communicators, types and windows: functions to copy and to delete one.
struct Keyval {
  enum class Of { kComms, kTypes, kWindows } of = Of::kComms;
  MPI_Comm_copy_attr_function* copy = nullptr;
  MPI_Comm_delete_attr_function* drop = nullptr;
  MPI_Type_copy_attr_function* copy_of_type = nullptr;
  MPI_Type_delete_attr_function* drop_of_type = nullptr;
  MPI_Win_delete_attr_function* drop_of_win = nullptr;  // windows are never duplicated
  void* extra_state = nullptr;
};
struct Attribute {
  std::shared_ptr<Keyval> keyval;
  void* value = nullptr;
};
using Attributes = std::map<int, Attribute>;

struct Topology {
  int kind = MPI_UNDEFINED;                // MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH
  std::vector<int> dims, periods;          // of a grid
  std::vector<int> index, edges;           // of a graph
  std::vector<int> sources, destinations;  // whom this rank receives from and sends to; may be null
  std::vector<int> source_weights, destination_weights;
  bool is_weighted = false;
};

// A communicator of MPI over one of hocket's; of an intercommunicator, over one of both groups.
struct Comm {
  MPI_Comm handle = MPI_COMM_NULL;
  std::shared_ptr<World> world;  // one of its own, where that was joined for it
  std::shared_ptr<Communicator> net;
  std::shared_ptr<Communicator> inner;         // for messages of collective calls
  std::shared_ptr<const Group> local, remote;  // remote: null within one group
  int rank = 0;
  int first_local = 0, first_remote = 0;  // where the groups begin in `net`
  std::uint32_t context = 0;              // the same on all ranks, another for each
  std::uint32_t made = 0;                 // communicators of this one
  std::uint32_t exchanges = 0;            // calls that went by `inner`

  std::mutex starting;  // threads that begin calls
  std::string name;
  std::shared_ptr<Errhandler> errhandler;
  Attributes attributes;
  std::shared_ptr<Topology> topology;
  std::shared_ptr<BufferedSends> buffered;  // where it has a buffer of its own
  std::shared_ptr<Session> session;         // whose buffer it uses else
  std::shared_ptr<Info> info = std::make_shared<Info>();

  int size() const noexcept { return static_cast<int>(local->members.size()); }
  bool is_inter() const noexcept { return remote != nullptr; }
  const Group& peers() const noexcept { return is_inter() ? *remote : *local; }
  int first_peer() const noexcept { return is_inter() ? first_remote : 0; }
};

struct Type {
  DatatypePtr type;
  std::string name;
  bool committed = false;
  bool is_predefined = false;
  Attributes attributes;
};

struct Op {
  int predefined = -1;  // its place in the table of MPI's; -1: the program's
  MPI_User_function* narrow = nullptr;
  MPI_User_function_c* wide = nullptr;
  bool commutes = true;
};

struct Message {  // one that was taken by Mprobe
  std::shared_ptr<Comm> comm;
  std::vector<std::byte> bytes;
  Outcome outcome;
  bool is_null = false;
};

// The parts of a partitioned message.
struct Partitions {
  bool sends = false;
  std::mutex mutex;  // guards the next
  std::vector<bool> is_ready;
  std::atomic<int> missing{0};  // of a send: those that are not ready yet
};

struct Request {
  Pending now;
  bool active = true;
  std::function<Pending()> restart;  // of a persistent one
  std::shared_ptr<Comm> comm;
  std::unique_ptr<Partitions> partitions;  // of a partitioned message
  bool is_general = false;                 // the program completes it
  std::atomic<bool> completed{false};
  MPI_Grequest_query_function* query = nullptr;
  MPI_Grequest_free_function* drop = nullptr;
  MPI_Grequest_cancel_function* cancel = nullptr;
  void* extra_state = nullptr;
};

}  // namespace hocket::mpi
