#include "interfaces/mpi/join.h"

#include <algorithm>

#include "hocket/bootstrap.h"
#include "interfaces/mpi/communicators.h"

namespace hocket::mpi {
namespace {

void send_to(int member, const void* data, std::size_t bytes, int tag) {
  Process& p = process();
  Work work;
  {
    const std::lock_guard lock(p.meetings_mutex);
    work = p.meetings->send_async(ConstArrayView(data, bytes, DType::kUInt8), member, {.tag = tag});
  }
  work.wait();
}
std::size_t recv_from(int member, void* data, std::size_t bytes, int tag) {
  Process& p = process();
  Work work;
  {
    const std::lock_guard lock(p.meetings_mutex);
    work = p.meetings->recv_async(
        ArrayView(data, bytes, DType::kUInt8), member, {.tag = tag, .allow_shorter = true});
  }
  work.wait();
  return work.received()->count;
}

// Bootstraps a communicator by messages; the first member collects and distributes.
class ByMessages final : public Bootstrap {
 public:
  ByMessages(const std::vector<int>& members, int tag) : members_(members), tag_(tag) {
    const auto own = std::find(members.begin(), members.end(), process().world->rank());
    rank_ = static_cast<int>(own - members.begin());
  }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }

  void broadcast(std::span<std::byte> bytes, int root) override {
    const auto first = static_cast<std::size_t>(root);
    if (rank_ != root) {
      recv_from(members_[first], bytes.data(), bytes.size(), tag_);
      return;
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (i != first) send_to(members_[i], bytes.data(), bytes.size(), tag_);
    }
  }
  void all_reduce(std::span<std::int64_t> values, Fold fold) override {
    if (rank_ == 0) {
      std::vector<std::int64_t> theirs(values.size());
      for (std::size_t i = 1; i < members_.size(); ++i) {
        recv_from(members_[i], theirs.data(), values.size_bytes(), tag_);
        fold_into(values, theirs, fold);
      }
    } else {
      send_to(members_[0], values.data(), values.size_bytes(), tag_);
    }
    broadcast(std::as_writable_bytes(values), 0);
  }

 private:
  const std::vector<int>& members_;
  int tag_;
  int rank_;
};

}  // namespace

int meeting(std::uint32_t context, int tag, const std::vector<int>& members) {
  std::uint64_t mixed = (std::uint64_t{context} << 32 | static_cast<std::uint32_t>(tag)) + 7;
  for (const int member : members) {
    mixed = (mixed ^ static_cast<std::uint64_t>(member)) * 0x9e3779b97f4a7c15ULL;
  }
  return kFirstMeeting | static_cast<int>(mixed * 0xbf58476d1ce4e5b9ULL >> 34);
}

std::shared_ptr<Comm> join(const std::vector<int>& members, int meeting) {
  auto made = std::make_shared<Comm>();
  made->local = std::make_shared<Group>(Group{members});
  made->rank = made->local->find(process().world->rank());
  made->context = static_cast<std::uint32_t>(meeting);
  ByMessages bootstrap(members, meeting);
  made->world = std::make_shared<World>(init(bootstrap, {.deadline = kForever}));
  made->net = std::shared_ptr<Communicator>(made->world, &made->world->communicator());
  return made;
}

std::vector<int> swap_members(const std::vector<int>& own, int leader, int meeting) {
  std::vector<int> theirs(static_cast<std::size_t>(process().world->size()));
  if (process().world->rank() < leader) {
    send_to(leader, own.data(), own.size() * sizeof(int), meeting);
  }
  const std::size_t bytes = recv_from(leader, theirs.data(), theirs.size() * sizeof(int), meeting);
  if (process().world->rank() > leader) {
    send_to(leader, own.data(), own.size() * sizeof(int), meeting);
  }
  theirs.resize(bytes / sizeof(int));
  return theirs;
}

std::shared_ptr<Comm> join_sides(Comm& local, int leader, std::vector<int> theirs, int tag) {
  int count = static_cast<int>(theirs.size());
  local.net->broadcast(scalar(count), {.root = leader});
  theirs.resize(static_cast<std::size_t>(count));
  local.net->broadcast(theirs, {.root = leader});
  const std::vector<int>& ours = local.local->members;
  for (const int member : theirs) {
    require(local.local->find(member) == MPI_UNDEFINED,
            MPI_ERR_COMM,
            "the two groups have a process in common");
  }
  // Both sides use the same order: the group whose first process has the lower number comes first.
  const bool first = ours.front() < theirs.front();
  std::vector<int> all = first ? ours : theirs;
  const std::vector<int>& behind = first ? theirs : ours;
  all.insert(all.end(), behind.begin(), behind.end());
  auto made = join(all, meeting(3, tag, all));
  made->local = local.local;
  made->remote = std::make_shared<Group>(Group{theirs});
  made->rank = local.rank;
  made->first_local = first ? 0 : count;
  made->first_remote = first ? local.size() : 0;
  make_inner(*made);
  return made;
}

std::shared_ptr<Comm> merge(Comm& sides, bool high) {
  const std::lock_guard lock(sides.starting);
  const std::int32_t own = high ? 1 : 0;
  std::vector<std::int32_t> flags(static_cast<std::size_t>(sides.net->size()));
  sides.net->all_gather(scalar(own), flags);
  const bool other = flags[static_cast<std::size_t>(sides.first_remote)] != 0;
  const bool is_first = high == other ? sides.first_local == 0 : !high;
  const int key = is_first ? sides.rank : sides.net->size() + sides.rank;
  auto made = std::make_shared<Comm>();
  made->world = sides.world;
  made->net = std::make_shared<Communicator>(sides.net->split({.color = 0, .key = key}));
  made->rank = made->net->rank();
  std::vector<int> members = is_first ? sides.local->members : sides.remote->members;
  const std::vector<int>& behind = is_first ? sides.remote->members : sides.local->members;
  members.insert(members.end(), behind.begin(), behind.end());
  made->local = std::make_shared<Group>(Group{std::move(members)});
  made->errhandler = sides.errhandler;
  made->context = sides.context * 31 + ++sides.made;
  return made;
}

}  // namespace hocket::mpi
