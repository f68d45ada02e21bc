// The collectives of objects. They send sizes first, then bytes, both with the communicator's
// public calls.
//
// No rank leaves the first call before all have entered it. A rank that cannot continue, because
// its object cannot be encoded or it lacks memory, refuses the next call. All ranks then leave
// together.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "calls/call/membership.h"
#include "calls/world/communicator_impl.h"
#include "foundation/base/deadline.h"
#include "hocket/communicator.h"
#include "hocket/error.h"
#include "hocket/object.h"

namespace hocket {
namespace {

using Bytes = std::vector<std::byte>;

// See CommunicatorImpl::before_call. `call` is the name of the call.
template <typename Part>
auto before_call(Communicator& comm, const char* call, const Part& part) {
  return comm.impl()->before_call(engine::Kind::kNone, [&] {
    try {
      return part();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", call, error.what()));
    }
  });
}

// The time limit of a call that consists of several parts.
class TimeLeft {
 public:
  TimeLeft(const Communicator& comm, const std::optional<Duration>& deadline)
      : given_(deadline.value_or(comm.deadline())), end_(base::Deadline::in(given_)) {}
  CallOptions call() const { return {.deadline = left()}; }
  RootOptions root(int rank) const { return {.root = rank, .deadline = left()}; }
  MessageOptions message(int tag) const { return {.tag = tag, .deadline = left()}; }

 private:
  // Returns a positive limit, even after the time has passed. An invalid limit is left unchanged,
  // so that the first part refuses it.
  Duration left() const {
    return given_ > Duration::zero() ? std::max(end_.left(), Duration(1)) : given_;
  }

  Duration given_;
  base::Deadline end_;
};

using Sizes = std::vector<std::size_t>;

Sizes room_for_all(const Communicator& comm) {
  return Sizes(static_cast<std::size_t>(std::max(comm.size(), 0)));
}

// A rank's bytes, and memory for the sizes of all ranks.
struct Contribution {
  Bytes bytes;
  Sizes sizes;
};

void exchange_sizes(Communicator& comm, Contribution& mine, const TimeLeft& time) {
  std::uint64_t size = mine.bytes.size();
  comm.all_gather(scalar(size), mine.sizes, time.call());
}

std::size_t total(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

std::vector<Object> decode_parts(std::span<const std::byte> bytes,
                                 std::span<const std::size_t> sizes) {
  std::vector<Object> objects;
  objects.reserve(sizes.size());
  for (const std::size_t size : sizes) {
    objects.push_back(decode(bytes.first(size)));
    bytes = bytes.subspan(size);
  }
  return objects;
}

// Encodes the objects that a root scatters, one after the other, with their sizes. Used at the root
// alone.
Contribution encode_batch(std::span<const Object> objects, int ranks) {
  if (objects.size() != static_cast<std::size_t>(ranks)) {
    throw InvalidArgument(fmt::format(
        "the root passed {} objects for {} ranks; pass one a rank", objects.size(), ranks));
  }
  Contribution batch;
  for (const Object& object : objects) {
    const Bytes bytes = encode(object);
    batch.sizes.push_back(bytes.size());
    batch.bytes.insert(batch.bytes.end(), bytes.begin(), bytes.end());
  }
  return batch;
}

// The first message of an object: a mark, the object's size, and as much of its bytes as fits. So a
// small object takes one message. A second message has the rest.
struct Opening {
  static constexpr std::uint64_t kObject = 0x31746a626f6b6368;
  std::uint64_t what = kObject;
  std::uint64_t size = 0;
  std::array<std::byte, 240> part{};

  std::size_t part_size() const { return std::min<std::size_t>(size, part.size()); }
};

std::span<std::byte> bytes_of(Opening& opening) {
  return std::as_writable_bytes(std::span(&opening, 1));
}

// Allocates memory for the message that has arrived, not for the announced size, which the sender
// could forge.
void require_announced(Communicator& comm,
                       const Opening& opening,
                       const Received& from,
                       const TimeLeft& time) {
  const std::uint64_t rest = opening.size - opening.part_size();
  if (rest == 0) return;
  const Received next = comm.probe(from.source, time.message(from.tag));
  if (next.count == rest && next.dtype == DType::kUInt8) return;
  throw InvalidArgument(fmt::format(
      "recv_object: rank {} announced {} bytes more of its object under tag {}, and sent {}[{}]",
      from.source,
      rest,
      from.tag,
      name_of(next.dtype),
      next.count));
}

void require_host(const MessageOptions& options) {
  if (!options.stream) return;
  throw InvalidArgument("stream is given, but objects lie in the host's memory; leave it out");
}

}  // namespace

void send_object(Communicator& comm,
                 const Object& object,
                 int destination,
                 const MessageOptions& options) {
  require_host(options);
  const TimeLeft time(comm, options.deadline);
  const Bytes bytes = encode(object);
  Opening opening{.size = bytes.size()};
  std::copy_n(bytes.begin(), opening.part_size(), opening.part.begin());
  comm.send(bytes_of(opening), destination, time.message(options.tag));
  const auto rest = std::span(bytes).subspan(opening.part_size());
  if (!rest.empty()) comm.send(rest, destination, time.message(options.tag));
}

ReceivedObject recv_object(Communicator& comm, int source, const MessageOptions& options) {
  require_host(options);
  const TimeLeft time(comm, options.deadline);
  Opening opening;
  const Received from = comm.recv(bytes_of(opening), source, time.message(options.tag));
  if (from.source == kNullRank) return {Object(), from};
  if (opening.what != Opening::kObject) {
    throw InvalidArgument(fmt::format(
        "recv_object: what rank {} sent under tag {} is an array; it is received by recv",
        from.source,
        from.tag));
  }
  require_announced(comm, opening, from, time);
  Bytes bytes(opening.size);
  std::copy_n(opening.part.begin(), opening.part_size(), bytes.begin());
  const auto rest = std::span(bytes).subspan(opening.part_size());
  if (!rest.empty()) comm.recv(rest, from.source, time.message(from.tag));
  return {decode(bytes), from};
}

Object broadcast_object(Communicator& comm, const Object& object, const RootOptions& options) {
  constexpr const char* kCall = "broadcast_object";
  const TimeLeft time(comm, options.deadline);
  const bool is_root = comm.rank() == options.root;
  auto mine = before_call(comm, kCall, [&] {
    call::require_rank("root", options.root, comm.size());
    return Contribution{.bytes = is_root ? encode(object) : Bytes(), .sizes = room_for_all(comm)};
  });
  exchange_sizes(comm, mine, time);
  before_call(
      comm, kCall, [&] { mine.bytes.resize(mine.sizes[static_cast<std::size_t>(options.root)]); });
  comm.broadcast(mine.bytes, time.root(options.root));
  return is_root ? object : decode(mine.bytes);
}

std::vector<Object> gather_object(Communicator& comm,
                                  const Object& object,
                                  const RootOptions& options) {
  constexpr const char* kCall = "gather_object";
  const TimeLeft time(comm, options.deadline);
  auto mine = before_call(comm, kCall, [&] {
    call::require_rank("root", options.root, comm.size());
    return Contribution{.bytes = encode(object), .sizes = room_for_all(comm)};
  });
  exchange_sizes(comm, mine, time);
  if (comm.rank() != options.root) {
    comm.gather_v(mine.bytes, ArrayView(), Parts{.counts = mine.sizes}, time.root(options.root));
    return {};
  }
  auto all = before_call(comm, kCall, [&] { return Bytes(total(mine.sizes)); });
  comm.gather_v(mine.bytes, all, Parts{.counts = mine.sizes}, time.root(options.root));
  return decode_parts(all, mine.sizes);
}

std::vector<Object> all_gather_object(Communicator& comm,
                                      const Object& object,
                                      const CallOptions& options) {
  constexpr const char* kCall = "all_gather_object";
  const TimeLeft time(comm, options.deadline);
  auto mine = before_call(comm, kCall, [&] {
    return Contribution{.bytes = encode(object), .sizes = room_for_all(comm)};
  });
  exchange_sizes(comm, mine, time);
  auto all = before_call(comm, kCall, [&] { return Bytes(total(mine.sizes)); });
  comm.all_gather_v(mine.bytes, all, Parts{.counts = mine.sizes}, time.call());
  return decode_parts(all, mine.sizes);
}

Object scatter_object(Communicator& comm,
                      std::span<const Object> objects,
                      const RootOptions& options) {
  constexpr const char* kCall = "scatter_object";
  const TimeLeft time(comm, options.deadline);
  Contribution mine;
  Sizes sizes;  // of the objects from each rank
  before_call(comm, kCall, [&] {
    call::require_rank("root", options.root, comm.size());
    sizes = room_for_all(comm);
    if (comm.rank() == options.root) {
      mine = encode_batch(objects, comm.size());
    } else {
      mine.sizes = sizes;
    }
  });
  comm.all_to_all(mine.sizes, sizes, time.call());
  auto bytes = before_call(
      comm, kCall, [&] { return Bytes(sizes[static_cast<std::size_t>(options.root)]); });
  comm.scatter_v(mine.bytes, Parts{.counts = mine.sizes}, bytes, time.root(options.root));
  return decode(bytes);
}

}  // namespace hocket
