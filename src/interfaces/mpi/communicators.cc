#include "interfaces/mpi/communicators.h"

#include <algorithm>
#include <numeric>

#include "interfaces/mpi/collectives/collective.h"
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/join.h"
#include "interfaces/mpi/threads.h"
#include "mpi_calls.h"

namespace hocket::mpi {

Comm& comm_of(MPI_Comm handle) {
  Comm* found = process().comms.find(handle);
  require(found != nullptr, MPI_ERR_COMM, "comm is no communicator");
  return *found;
}
std::shared_ptr<Comm> shared_comm(MPI_Comm handle) {
  auto found = process().comms.share(handle);
  require(found != nullptr, MPI_ERR_COMM, "comm is no communicator");
  return found;
}

MPI_Comm publish(std::shared_ptr<Comm> made) {
  if (made == nullptr) return MPI_COMM_NULL;
  Comm& comm = *made;
  comm.handle = process().comms.add(std::move(made));
  return comm.handle;
}

namespace {

std::uint32_t next_context(Comm& parent) {
  return static_cast<std::uint32_t>(
      (std::uint64_t{parent.context} * 1000003 + ++parent.made) * 0x9e3779b97f4a7c15ULL >> 32);
}

std::shared_ptr<Communicator> share(Communicator made) {
  return std::make_shared<Communicator>(std::move(made));
}

// Sets the local and remote groups of a communicator whose ranks are some of the parent's.
void set_groups(Comm& made, const Comm& parent) {
  std::vector<int> ours, theirs;
  const auto all = parent.net->world_ranks();
  const int remotes = parent.is_inter() ? static_cast<int>(parent.remote->members.size()) : 0;
  int first_ours = -1, first_theirs = -1, place = 0;
  for (const int member : made.net->world_ranks()) {
    const int in_parent = static_cast<int>(std::find(all.begin(), all.end(), member) - all.begin());
    const bool is_remote = parent.is_inter() && in_parent >= parent.first_remote &&
                           in_parent < parent.first_remote + remotes;
    const auto i = static_cast<std::size_t>(in_parent -
                                            (is_remote ? parent.first_remote : parent.first_local));
    (is_remote ? theirs : ours).push_back((is_remote ? *parent.remote : *parent.local).members[i]);
    int& first = is_remote ? first_theirs : first_ours;
    if (first < 0) first = place;
    ++place;
  }
  made.rank = made.net->rank() - std::max(first_ours, 0);
  made.first_local = std::max(first_ours, 0);
  made.first_remote = std::max(first_theirs, 0);
  made.local = std::make_shared<Group>(Group{std::move(ours)});
  if (parent.is_inter()) made.remote = std::make_shared<Group>(Group{std::move(theirs)});
}

std::shared_ptr<Comm> derive(Comm& parent, Communicator net, std::uint32_t context) {
  if (!net.is_member()) return nullptr;
  auto made = std::make_shared<Comm>();
  made->world = parent.world;
  made->net = share(std::move(net));
  made->errhandler = parent.errhandler;
  made->session = parent.session;
  made->context = context;
  set_groups(*made, parent);
  if (parent.is_inter()) {
    make_inner(*made);
    if (made->local->members.empty() || made->remote->members.empty()) return nullptr;
  }
  return made;
}

// Returns this rank's key for hocket's split. It keeps each group of an intercommunicator together.
int ordered_key(Comm& parent, int key) {
  if (!parent.is_inter()) return key;
  struct Choice {
    int side, key;
  };
  const Choice own{parent.first_local, key};
  std::vector<Choice> all(static_cast<std::size_t>(parent.net->size()));
  parent.net->all_gather(ConstArrayView(&own, sizeof own, DType::kUInt8),
                         ArrayView(all.data(), all.size() * sizeof own, DType::kUInt8));
  std::vector<int> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Choice& x = all[static_cast<std::size_t>(a)];
    const Choice& y = all[static_cast<std::size_t>(b)];
    return std::pair(x.side, x.key) < std::pair(y.side, y.key);
  });
  return static_cast<int>(std::find(order.begin(), order.end(), parent.net->rank()) -
                          order.begin());
}

}  // namespace

void make_inner(Comm& comm) { comm.inner = share(comm.net->duplicate()); }

std::shared_ptr<Comm> split(Comm& parent, int color, int key) {
  const std::lock_guard lock(parent.starting);
  const int ordered = ordered_key(parent, key);
  const std::uint32_t context = next_context(parent);
  return derive(parent, parent.net->split({.color = color, .key = ordered}), context);
}
std::shared_ptr<Comm> duplicate(Comm& parent) {
  const std::lock_guard lock(parent.starting);
  const std::uint32_t context = next_context(parent);
  auto made = derive(parent, parent.net->duplicate(), context);
  made->topology = parent.topology;
  if (made->topology != nullptr) make_inner(*made);
  made->info = std::make_shared<Info>(*parent.info);
  return made;
}

bool is_on_one_host(const Comm& comm) {
  const auto hosts = comm.net->hosts();
  return std::all_of(hosts.begin(), hosts.end(), [&](int host) { return host == hosts[0]; });
}
const Info* hints_of(MPI_Info handle) {
  if (handle == MPI_INFO_NULL) return nullptr;
  const Info* found = process().infos.find(handle);
  require(found != nullptr, MPI_ERR_INFO, "info is no info object");
  return found;
}

namespace {

// A freed communicator that has a world of its own. If this rank left that world at once, calls
// that other ranks have not begun would fail. So it stays until all ranks have freed the
// communicator.
struct Freed {
  std::shared_ptr<Comm> comm;
  Work by_all;  // a barrier
};
struct FreedComms {
  std::mutex mutex;
  std::vector<Freed> waiting;
};
FreedComms& freed_comms() {
  static FreedComms& made = *new FreedComms();  // NOLINT: it outlives what the program destroys
  return made;
}

// Releases a communicator. Does not wait for other ranks, because ranks may free their
// communicators in different orders.
void release(std::shared_ptr<Comm> last) {
  FreedComms& freed = freed_comms();
  const std::lock_guard lock(freed.mutex);
  std::erase_if(freed.waiting, [](Freed& one) { return one.by_all.test(); });
  if (last->world == nullptr) return;
  try {
    const std::lock_guard starting(last->starting);
    Work by_all = last->net->barrier_async();
    freed.waiting.push_back({std::move(last), std::move(by_all)});
  } catch (const Error&) {  // a rank is lost, so the others' calls have ended
  }
}

}  // namespace

OwnComm::OwnComm(MPI_Comm parent)
    : handle_(new const MPI_Comm(publish(duplicate(comm_of(parent)))), [](const MPI_Comm* handle) {
        release(process().comms.remove(*handle));
        delete handle;  // NOLINT: shared_ptr's own
      }) {}

void add_first_communicators(Process& p) {
  Communicator& net = p.world->communicator();
  p.meetings = share(net.duplicate());
  auto world = std::make_shared<Comm>();
  world->handle = MPI_COMM_WORLD;
  world->net = std::shared_ptr<Communicator>(p.world, &net);
  world->rank = net.rank();
  std::vector<int> all(static_cast<std::size_t>(net.size()));
  std::iota(all.begin(), all.end(), 0);
  world->local = std::make_shared<Group>(Group{all});
  world->name = "MPI_COMM_WORLD";
  world->context = 1;
  world->errhandler = p.errhandlers.share(MPI_ERRORS_ARE_FATAL);
  auto self = derive(*world, net.split({.color = net.rank()}), 2);
  self->handle = MPI_COMM_SELF;
  self->name = "MPI_COMM_SELF";
  p.comms.add_predefined(MPI_COMM_WORLD, std::move(world));
  p.comms.add_predefined(MPI_COMM_SELF, std::move(self));
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Comm_rank(MPI_Comm comm, int* rank) { *rank = comm_of(comm).rank; }
void Comm_size(MPI_Comm comm, int* size) { *size = comm_of(comm).size(); }
void Comm_remote_size(MPI_Comm comm, int* size) {
  require(comm_of(comm).is_inter(), MPI_ERR_COMM, "comm has one group");
  *size = static_cast<int>(comm_of(comm).remote->members.size());
}
void Comm_test_inter(MPI_Comm comm, int* flag) { *flag = comm_of(comm).is_inter(); }
void Comm_get_parent(MPI_Comm* parent) { *parent = MPI_COMM_NULL; }

void Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result) {
  const Comm& a = comm_of(comm1);
  const Comm& b = comm_of(comm2);
  *result = MPI_UNEQUAL;
  if (comm1 == comm2) {
    *result = MPI_IDENT;
  } else if (a.is_inter() == b.is_inter()) {
    const auto sorted = [](const std::shared_ptr<const Group>& group) {
      std::vector<int> members = group == nullptr ? std::vector<int>{} : group->members;
      std::sort(members.begin(), members.end());
      return members;
    };
    const auto same = [](const std::shared_ptr<const Group>& x,
                         const std::shared_ptr<const Group>& y) {
      return (x == nullptr && y == nullptr) || x->members == y->members;
    };
    if (same(a.local, b.local) && same(a.remote, b.remote)) {
      *result = MPI_CONGRUENT;
    } else if (sorted(a.local) == sorted(b.local) && sorted(a.remote) == sorted(b.remote)) {
      *result = MPI_SIMILAR;
    }
  }
}

void Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  Comm& old = comm_of(comm);
  *newcomm = MPI_COMM_NULL;
  auto made = duplicate(old);
  Comm& fresh = *made;
  MPI_Comm handle = publish(std::move(made));
  try {
    copy_attributes(old, fresh);
  } catch (...) {
    Comm_free(&handle);
    throw;
  }
  *newcomm = handle;
}
void Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  Comm_dup(comm, newcomm);
  if (info != MPI_INFO_NULL) Comm_set_info(*newcomm, info);
}
namespace {

// The state of a duplicate that is being made.
struct Duplicating {
  std::atomic<bool> is_over{false};
  int code = MPI_SUCCESS;  // written before is_over
};

// Returns all processes of a communicator, in the order of its ranks.
std::vector<int> all_members(const Comm& comm) {
  if (!comm.is_inter()) return comm.local->members;
  const bool is_first = comm.first_local < comm.first_remote;
  std::vector<int> all = is_first ? comm.local->members : comm.remote->members;
  const auto& behind = is_first ? comm.remote->members : comm.local->members;
  all.insert(all.end(), behind.begin(), behind.end());
  return all;
}

}  // namespace

// A separate thread makes the duplicate, by messages that no other call uses. Ranks may make calls
// of `comm` meanwhile, and may duplicate several communicators in different orders. An error of the
// thread, or of its start, ends the request.
void Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  Comm& old = comm_of(comm);
  *newcomm = MPI_COMM_NULL;
  auto made = std::make_shared<Comm>();
  {
    const std::lock_guard lock(old.starting);
    made->context = next_context(old);
  }
  made->local = old.local;
  made->remote = old.remote;
  made->rank = old.rank;
  made->first_local = old.first_local;
  made->first_remote = old.first_remote;
  made->errhandler = old.errhandler;
  made->session = old.session;
  made->topology = old.topology;
  made->info = std::make_shared<Info>(*old.info);
  copy_attributes(old, *made);
  const auto state = std::make_shared<Duplicating>();
  *newcomm = publish(made);
  try {
    hand_out_polled(
        request,
        [state] {
          if (!state->is_over) return false;
          if (state->code != MPI_SUCCESS) throw Failure{state->code};
          return true;
        },
        Scope{comm});
  } catch (...) {
    Comm_free(newcomm);
    throw;
  }
  try {
    start_thread([state, made, members = all_members(old)] {
      try {
        const auto joined = join(members, meeting(made->context, 0, members));
        made->world = joined->world;
        made->net = joined->net;
        if (made->is_inter() || made->topology != nullptr) make_inner(*made);
      } catch (...) {
        state->code = code_of_caught();
      }
      state->is_over = true;
    }).detach();
  } catch (...) {  // no thread: the request ends with this error
    state->code = code_of_caught();
    state->is_over = true;
  }
}
void Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
  Comm_idup(comm, newcomm, request);
  if (info != MPI_INFO_NULL) Comm_set_info(*newcomm, info);
}

void Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  require(color >= 0 || color == MPI_UNDEFINED, MPI_ERR_ARG, "color is negative");
  *newcomm = publish(split(comm_of(comm), color == MPI_UNDEFINED ? -1 : color, key));
}
namespace {
// Returns whether the call splits by host. The host's memory is the only hardware resource by which
// it can split.
bool is_by_host(int split_type, MPI_Info info) {
  if (split_type == MPI_COMM_TYPE_SHARED) return true;
  if (split_type != MPI_COMM_TYPE_HW_GUIDED && split_type != MPI_COMM_TYPE_RESOURCE_GUIDED) {
    return false;
  }
  const Info* given = process().infos.find(info);
  const std::string* type = given == nullptr ? nullptr : given->find("mpi_hw_resource_type");
  return type != nullptr && *type == "mpi_shared_memory";
}
}  // namespace
void Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  Comm& c = comm_of(comm);
  const bool known = split_type == MPI_COMM_TYPE_SHARED || split_type == MPI_UNDEFINED ||
                     split_type == MPI_COMM_TYPE_HW_GUIDED ||
                     split_type == MPI_COMM_TYPE_HW_UNGUIDED ||
                     split_type == MPI_COMM_TYPE_RESOURCE_GUIDED;
  require(known, MPI_ERR_ARG, "split_type is none");
  const int color =
      is_by_host(split_type, info) ? c.net->hosts()[static_cast<std::size_t>(c.net->rank())] : -1;
  *newcomm = publish(split(c, color, key));
}
void Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
  Comm& c = comm_of(comm);
  const Group& g = group_of(group);
  const int key = g.find(process().world->rank());
  const bool is_member = key != MPI_UNDEFINED;
  int color = -1;
  for (const int member : g.members) {
    require(c.local->find(member) != MPI_UNDEFINED,
            MPI_ERR_GROUP,
            "group has a process that is not in comm");
  }
  // On an intercommunicator each side passes its own group. The two groups form the new
  // communicator.
  if (is_member) color = c.is_inter() ? 0 : c.local->find(g.members.front());
  *newcomm = publish(split(c, color, is_member ? key : 0));
}
void Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
  Comm& c = comm_of(comm);
  const Group& g = group_of(group);
  *newcomm = MPI_COMM_NULL;
  if (g.find(process().world->rank()) == MPI_UNDEFINED) return;
  auto made = join(g.members, meeting(c.context, tag, g.members));
  made->errhandler = c.errhandler;
  *newcomm = publish(std::move(made));
}

namespace {
int meeting_of(const char* stringtag, const std::vector<int>& members) {
  std::uint32_t mixed = 5;
  for (const char* c = stringtag; *c != '\0'; ++c)
    mixed = mixed * 31 + static_cast<unsigned char>(*c);
  return meeting(mixed, 4, members);
}
void set_handler(Comm& made, MPI_Errhandler errhandler) {
  made.errhandler = process().errhandlers.share(errhandler);
  if (made.errhandler == nullptr) made.errhandler = comm_of(MPI_COMM_SELF).errhandler;
}
}  // namespace
void Comm_create_from_group(MPI_Group group,
                            const char* stringtag,
                            MPI_Info,
                            MPI_Errhandler errhandler,
                            MPI_Comm* newcomm) {
  const Group& g = group_of(group);
  *newcomm = MPI_COMM_NULL;
  if (g.members.empty()) return;
  auto made = join(g.members, meeting_of(stringtag, g.members));
  made->session = g.session;
  set_handler(*made, errhandler);
  *newcomm = publish(std::move(made));
}
void Intercomm_create_from_groups(MPI_Group local_group,
                                  int local_leader,
                                  MPI_Group remote_group,
                                  int,
                                  const char* stringtag,
                                  MPI_Info,
                                  MPI_Errhandler errhandler,
                                  MPI_Comm* newintercomm) {
  const Group& ours = group_of(local_group);
  const Group& theirs = group_of(remote_group);
  require(local_leader >= 0 && local_leader < static_cast<int>(ours.members.size()),
          MPI_ERR_RANK,
          "local_leader is no rank of local_group");
  auto local = join(ours.members, meeting_of(stringtag, ours.members));
  set_handler(*local, errhandler);
  auto made = join_sides(*local, local_leader, theirs.members, 0);
  made->errhandler = local->errhandler;
  *newintercomm = publish(std::move(made));
}

void Intercomm_create(MPI_Comm local_comm,
                      int local_leader,
                      MPI_Comm peer_comm,
                      int remote_leader,
                      int tag,
                      MPI_Comm* newintercomm) {
  Comm& local = comm_of(local_comm);
  require(!local.is_inter(), MPI_ERR_COMM, "local_comm has two groups");
  require(local_leader >= 0 && local_leader < local.size(),
          MPI_ERR_RANK,
          "local_leader is no rank of local_comm");
  std::vector<int> theirs;
  if (local.rank == local_leader) {
    Comm& peers = comm_of(peer_comm);
    require(remote_leader >= 0 && remote_leader < static_cast<int>(peers.peers().members.size()),
            MPI_ERR_RANK,
            "remote_leader is no rank of peer_comm");
    theirs = swap_members(local.local->members,
                          peers.peers().members[static_cast<std::size_t>(remote_leader)],
                          meeting(peers.context, tag, {}));
  }
  auto made = join_sides(local, local_leader, std::move(theirs), tag);
  made->errhandler = local.errhandler;
  *newintercomm = publish(std::move(made));
}
void Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newintracomm) {
  Comm& c = comm_of(intercomm);
  require(c.is_inter(), MPI_ERR_COMM, "intercomm has one group");
  auto made = merge(c, high != 0);
  *newintracomm = publish(std::move(made));
}

void Comm_free(MPI_Comm* comm) {
  Comm& c = comm_of(*comm);
  require(*comm != MPI_COMM_WORLD && *comm != MPI_COMM_SELF, MPI_ERR_COMM, "comm is predefined");
  delete_attributes(c);
  release(process().comms.remove(*comm));
  *comm = MPI_COMM_NULL;
}
// Waits first for this rank's messages and collectives, also for those whose requests were freed.
void Comm_disconnect(MPI_Comm* comm) {
  wait_for_all_of(shared_comm(*comm));
  Comm_free(comm);
}

void Comm_set_name(MPI_Comm comm, const char* name) {
  comm_of(comm).name = std::string(name).substr(0, MPI_MAX_OBJECT_NAME - 1);
}
void Comm_get_name(MPI_Comm comm, char* name, int* resultlen) {
  const std::string found = comm == MPI_COMM_NULL ? "MPI_COMM_NULL" : comm_of(comm).name;
  found.copy(name, found.size());
  name[found.size()] = '\0';
  *resultlen = static_cast<int>(found.size());
}
void Comm_set_info(MPI_Comm comm, MPI_Info info) {
  const auto given = process().infos.share(info);
  require(given != nullptr, MPI_ERR_INFO, "info is no info object");
  for (const auto& [key, value] : given->entries) {
    if (key.starts_with("mpi_")) comm_of(comm).info->set(key, value);  // others are no hints
  }
}
void Comm_get_info(MPI_Comm comm, MPI_Info* info) {
  *info = process().infos.add(std::make_shared<Info>(*comm_of(comm).info));
}

}  // namespace hocket::mpi::call
