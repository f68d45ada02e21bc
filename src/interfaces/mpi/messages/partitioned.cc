// Partitioned messages. The whole message is sent when its last partition is ready. All partitions
// arrive at the same time, when the whole message has arrived.
//
// MPI matches partitioned messages in the order of the ..._init calls, not of the starts. So
// MPI_Psend_init chooses a channel to the receiver: a tag that no other message of this rank to it
// has. It sends the receiver an offer with the channel:
//
//   sender                                        receiver
//   Psend_init -- offer: comm, tag, channel -->   the i-th offer is for the i-th Precv_init
//   last Pready -- the bytes, with that tag --->  Start
//
// Offers and bytes travel on a communicator that the program cannot see, `Process::meetings`. So
// MPI_Recv and MPI_Probe never find them.
#include <list>
#include <map>
#include <tuple>

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/collectives/collective.h"
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/join.h"
#include "interfaces/mpi/messages/messages.h"
#include "interfaces/mpi/process.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

constexpr int kOffers = 0;  // the tag of offers; channels are larger

struct Offer {
  std::uint32_t context;
  std::int32_t tag;
  std::int32_t channel;
};

// The process's channels. `meetings_mutex` guards them and all messages on `meetings`.
struct Channels {
  struct Pair {  // the messages of one sender, communicator and tag
    std::vector<int> offered;
    std::size_t receives = 0;
  };
  std::map<int, int> made;  // number of channels by destination
  std::map<std::tuple<std::uint32_t, int, int>, Pair> pairs;
  std::list<std::pair<Work, std::unique_ptr<Offer>>> leaving;
};
Channels& channels() {
  static Channels& made = *new Channels();  // NOLINT: it outlives what the program destroys
  return made;
}

ConstArrayView view_of(const Offer& offer) { return {&offer, sizeof offer, DType::kUInt8}; }

int make_channel(const Comm& comm, int member, int tag) {
  Process& p = process();
  const std::lock_guard lock(p.meetings_mutex);
  Channels& all = channels();
  all.leaving.remove_if([](auto& offer) { return offer.first.test(); });
  const int channel = ++all.made[member];
  require(channel < kFirstMeeting, MPI_ERR_OTHER, "there are no more partitioned messages");
  auto offer = std::make_unique<Offer>(Offer{comm.context, tag, channel});
  Work work = p.meetings->send_async(view_of(*offer), member, {.tag = kOffers});
  all.leaving.emplace_back(std::move(work), std::move(offer));
  return channel;
}

// The channel that a receive expects. The i-th receive from a sender, communicator and tag gets the
// channel of the i-th offer from it.
class ExpectedChannel {
 public:
  ExpectedChannel(const Comm& comm, int member, int tag)
      : key_(comm.context, member, tag), place_(next_place(key_)) {}

  // Returns the channel; absent if its offer has not come.
  std::optional<int> find() const {
    Process& p = process();
    const std::lock_guard lock(p.meetings_mutex);
    Channels& all = channels();
    // Only this sender is probed: a probe for any rank fails once any rank of the job has died.
    const int member = std::get<1>(key_);
    while (p.meetings->probe_now(member, {.tag = kOffers})) {
      Offer offer{};
      p.meetings->recv(ArrayView(&offer, sizeof offer, DType::kUInt8), member, {.tag = kOffers});
      all.pairs[{offer.context, member, offer.tag}].offered.push_back(offer.channel);
    }
    const std::vector<int>& offered = all.pairs[key_].offered;
    return place_ < offered.size() ? std::optional(offered[place_]) : std::nullopt;
  }

 private:
  using Key = std::tuple<std::uint32_t, int, int>;
  static std::size_t next_place(const Key& key) {
    const std::lock_guard lock(process().meetings_mutex);
    return channels().pairs[key].receives++;
  }

  Key key_;
  std::size_t place_;
};

Pending send_parts(const Sent& what, int member, int channel) {
  Process& p = process();
  const std::lock_guard lock(p.meetings_mutex);
  Pending made(p.meetings->send_async(what.view(), member, {.tag = channel}));
  made.finish = keeping(what);
  return made;
}
Pending recv_parts(const Space& space, int member, int channel, const Outcome& outcome) {
  Process& p = process();
  const std::lock_guard lock(p.meetings_mutex);
  Pending made(p.meetings->recv_async(
      space.view(), member, {.tag = channel, .allow_shorter = true, .allow_longer = true}));
  made.when_received = [space, outcome](const Received& received, Outcome& to) {
    space.take(received.count);
    to = outcome;
    to.bytes = received.count;
    note_truncation(to, space.bytes);
  };
  return made;
}

// Returns the process on the other side of a partitioned message. Such messages have no wildcards.
int member_of(const Comm& comm, int peer, int tag) {
  const auto& members = comm.peers().members;
  if (peer < 0 || peer >= static_cast<int>(members.size())) {
    fail(MPI_ERR_RANK,
         "the other side is rank " + std::to_string(peer) + ", and there are " +
             std::to_string(members.size()) + " ranks");
  }
  if (tag < 0) fail(MPI_ERR_TAG, "tag is " + std::to_string(tag) + ", expected at least 0");
  return members[static_cast<std::size_t>(peer)];
}

Request& partitioned(MPI_Request handle) {
  Request* found = process().requests.find(handle);
  require(found != nullptr && found->partitions != nullptr,
          MPI_ERR_REQUEST,
          "request is none of a partitioned message");
  require(found->active, MPI_ERR_REQUEST, "request has not been started");
  return *found;
}

void make_ready(Request& request, int first, int last) {
  Partitions& all = *request.partitions;
  require(all.sends, MPI_ERR_REQUEST, "request receives");
  const std::lock_guard lock(all.mutex);
  require(first >= 0 && last < static_cast<int>(all.is_ready.size()),
          MPI_ERR_ARG,
          "partition is none of request's");
  for (int i = first; i <= last; ++i) {
    require(!all.is_ready[static_cast<std::size_t>(i)], MPI_ERR_ARG, "partition is ready already");
    all.is_ready[static_cast<std::size_t>(i)] = true;
    if (all.missing == 1) request.now = request.restart();
    --all.missing;
  }
}

// Makes an inactive request with this many partitions. `begin` starts its message.
Partitions& hand_out_partitioned(MPI_Request* handle,
                                 int count,
                                 std::function<Pending()> begin,
                                 MPI_Comm comm) {
  hand_out_persistent(handle, std::move(begin), Scope{comm});
  auto made = std::make_unique<Partitions>();
  made->is_ready.resize(static_cast<std::size_t>(count));
  Partitions& parts = *made;
  process().requests.find(*handle)->partitions = std::move(made);
  return parts;
}

}  // namespace

Pending start_partitions(Request& request) {
  Partitions& all = *request.partitions;
  const std::lock_guard lock(all.mutex);
  all.is_ready.assign(all.is_ready.size(), false);
  const bool is_offered = all.is_offered == nullptr || all.is_offered();
  all.missing = all.sends ? static_cast<int>(all.is_ready.size()) : is_offered ? 0 : 1;
  return all.missing == 0 ? request.restart() : Pending{};
}

bool has_missing_partitions(Request& request) {
  if (request.partitions == nullptr || request.partitions->missing == 0) return false;
  Partitions& all = *request.partitions;
  const std::lock_guard lock(all.mutex);
  if (all.sends || all.missing == 0 || !all.is_offered()) return all.missing != 0;
  request.now = request.restart();
  all.missing = 0;
  return false;
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Psend_init(const void* buf,
                int partitions,
                MPI_Count count,
                MPI_Datatype datatype,
                int dest,
                int tag,
                MPI_Comm handle,
                MPI_Info,
                MPI_Request* request) {
  const Comm& comm = comm_of(handle);
  require(partitions >= 0, MPI_ERR_ARG, "partitions is negative");
  bytes_of(type_of(datatype), count);  // checks both
  std::function<Pending()> begin = [] { return Pending(); };
  if (dest != MPI_PROC_NULL) {
    const int member = member_of(comm, dest, tag);
    const int channel = make_channel(comm, member, tag);
    begin = [=, type = OwnHandle(datatype, process().types)] {
      return send_parts(outgoing(buf, partitions * count, type_of(type.get())), member, channel);
    };
  }
  hand_out_partitioned(request, partitions, std::move(begin), handle).sends = true;
}
void Precv_init(void* buf,
                int partitions,
                MPI_Count count,
                MPI_Datatype datatype,
                int source,
                int tag,
                MPI_Comm handle,
                MPI_Info,
                MPI_Request* request) {
  const Comm& comm = comm_of(handle);
  require(partitions >= 0, MPI_ERR_ARG, "partitions is negative");
  bytes_of(type_of(datatype), count);  // checks both
  if (source == MPI_PROC_NULL) {
    const auto begin = [] { return received_already(kFromNobody); };
    hand_out_partitioned(request, partitions, begin, handle);
    return;
  }
  const int member = member_of(comm, source, tag);
  const ExpectedChannel expected(comm, member, tag);
  const auto begin = [=, type = OwnHandle(datatype, process().types)] {
    const Space space = incoming(buf, partitions * count, type.get());
    return recv_parts(space, member, *expected.find(), {.source = source, .tag = tag});
  };
  hand_out_partitioned(request, partitions, begin, handle).is_offered = [expected] {
    return expected.find().has_value();
  };
}

void Pready(int partition, MPI_Request request) {
  make_ready(partitioned(request), partition, partition);
}
void Pready_range(int partition_low, int partition_high, MPI_Request request) {
  make_ready(partitioned(request), partition_low, partition_high);
}
void Pready_list(int length, const int* partitions, MPI_Request request) {
  for (int i = 0; i < length; ++i) Pready(partitions[i], request);
}
void Parrived(MPI_Request request, int partition, int* flag) {
  *flag = 1;
  Request* found = process().requests.find(request);
  require(found != nullptr && found->partitions != nullptr && !found->partitions->sends,
          MPI_ERR_REQUEST,
          "request is none of a partitioned receive");
  require(partition >= 0 && partition < static_cast<int>(found->partitions->is_ready.size()),
          MPI_ERR_ARG,
          "partition is none of the request");
  *flag = is_over(*found);
  if (found->now.outcome.code != MPI_SUCCESS) throw Failure{found->now.outcome.code};
}

}  // namespace hocket::mpi::call
