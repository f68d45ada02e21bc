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
#include "interfaces/mpi/messages/pending.h"
#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {

struct Session;

// A group of processes, by their ranks in MPI_COMM_WORLD. A value.
struct Group {
  std::vector<int> members;
  std::shared_ptr<Session> session = {};  // set if the group comes from a session
  int find(int process) const noexcept;   // returns MPI_UNDEFINED for a process that is not in it
};

struct Info {
  std::vector<std::pair<std::string, std::string>> entries;  // in the order in which they were set
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
  std::shared_ptr<BufferedSends> buffered;  // the session's own send buffer; null: it has none
};

// A key of attributes: the functions that copy and delete an attribute.
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
  int keyval = 0;
  std::shared_ptr<Keyval> kind;
  void* value = nullptr;
};
using Attributes = std::vector<Attribute>;  // in the order of their setting

struct Topology {
  int kind = MPI_UNDEFINED;                // MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH
  std::vector<int> dims, periods;          // of a grid
  std::vector<int> index, edges;           // of a graph
  std::vector<int> sources, destinations;  // this rank's neighbours; may be MPI_PROC_NULL
  std::vector<int> source_weights, destination_weights;
  bool is_weighted = false;
};

// An MPI communicator over `net`, a communicator of hocket. In an intercommunicator, `net` has the
// ranks of both groups.
struct Comm : std::enable_shared_from_this<Comm> {
  MPI_Comm handle = MPI_COMM_NULL;
  std::shared_ptr<World> world;  // set if the communicator has a world of its own
  std::shared_ptr<Communicator> net;
  std::shared_ptr<Communicator> inner;         // for messages of collective calls
  std::shared_ptr<const Group> local, remote;  // remote: null within one group
  int rank = 0;
  int first_local = 0, first_remote = 0;  // the first rank of each group in `net`
  std::uint32_t context = 0;              // identifies this communicator; the same on all its ranks
  std::uint32_t made = 0;                 // number of communicators that were made of this one
  std::uint32_t exchanges = 0;            // number of collective calls that used `inner`
  // After a failure; see extensions/ulfm.cc.
  std::shared_ptr<Communicator> survivors;  // null: none was needed yet
  std::vector<int> acknowledged;            // processes that have died
  std::int64_t agreed = 0;                  // number of agreements
  std::int32_t last_agreed = 0;

  std::mutex starting;  // held by a thread while it begins a call
  std::string name;
  std::shared_ptr<Errhandler> errhandler;
  Attributes attributes;
  std::shared_ptr<Topology> topology;
  std::shared_ptr<BufferedSends> buffered;  // its own send buffer; null: it has none
  std::shared_ptr<Session> session;         // whose send buffer it uses if it has none
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
  int predefined = -1;  // its index among MPI's predefined operators; -1: it is the program's
  MPI_User_function* narrow = nullptr;
  MPI_User_function_c* wide = nullptr;
  bool commutes = true;
};

struct Message {  // a message that MPI_Mprobe has taken
  std::shared_ptr<Comm> comm;
  std::vector<std::byte> bytes;
  Outcome outcome;
  bool is_null = false;
};

// The partitions of a partitioned message.
struct Partitions {
  bool sends = false;
  std::mutex mutex;  // guards is_ready
  std::vector<bool> is_ready;
  // For a send: the number of partitions that are not ready yet. For a receive: 1 until the offer
  // of the matching MPI_Psend_init has come, then 0.
  std::atomic<int> missing{0};
  std::function<bool()> is_offered;  // of a receive: checks whether its offer has come
};

struct Request {
  Pending now;
  bool active = true;
  std::function<Pending()> restart;  // of a persistent request
  std::shared_ptr<Comm> comm;
  std::unique_ptr<Partitions> partitions;  // of a partitioned request
  bool is_general = false;                 // the program completes it
  std::function<bool()> poll;  // null: `now` tells the end. Else: whether it has ended; may throw
  std::atomic<bool> completed{false};
  std::atomic<bool> is_let_go{false};  // the program has completed or freed it, but not both
  MPI_Grequest_query_function* query = nullptr;
  MPI_Grequest_free_function* drop = nullptr;
  MPI_Grequest_cancel_function* cancel = nullptr;
  void* extra_state = nullptr;

  bool is_polled() const noexcept { return is_general || poll; }
};

}  // namespace hocket::mpi
