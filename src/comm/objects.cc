// The collectives of objects: sizes first, then bytes, both by the public calls of the
// communicator.
//
// A rank whose object cannot be encoded takes part in the exchange of sizes all the same, with a
// size that says so; thus all ranks leave the call there, and the communicator stays usable.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <numeric>

#include "base/deadline.h"
#include "hocket/communicator.h"
#include "hocket/object.h"

namespace hocket {
namespace {

using Bytes = std::vector<std::byte>;

// In place of a size.
constexpr std::uint64_t kRefused = std::numeric_limits<std::uint64_t>::max();

// What a rank brings: bytes, or the error that it throws once the others know of it.
struct Contribution {
  Bytes bytes;
  std::exception_ptr error;

  std::uint64_t size() const noexcept { return error ? kRefused : bytes.size(); }
};

Contribution try_encode(const Object& object) {
  try {
    return {encode(object), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

// Ends the call where `rank` brought nothing; the rank itself throws what stood in the way.
void check_size(std::uint64_t size, int rank, const char* call, const std::exception_ptr& mine) {
  if (mine) std::rethrow_exception(mine);
  if (size == kRefused) {
    throw InvalidArgument(fmt::format(
        "{}: rank {} refused the call, as its object cannot be sent; its own error says why",
        call,
        rank));
  }
}

// The time of a call that consists of several.
class TimeLeft {
 public:
  TimeLeft(const Communicator& comm, const std::optional<Duration>& deadline)
      : end_(base::Deadline::in(deadline.value_or(comm.deadline()))) {}
  CallOptions call() const { return {.deadline = end_.left()}; }
  RootOptions root(int rank) const { return {.root = rank, .deadline = end_.left()}; }

 private:
  base::Deadline end_;
};

// The sizes of all ranks; throws on all of them where one brought nothing.
std::vector<std::size_t> exchange_sizes(Communicator& comm,
                                        const Contribution& mine,
                                        const char* call,
                                        const TimeLeft& time) {
  std::uint64_t size = mine.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(std::max(comm.size(), 0)));
  comm.all_gather(scalar(size), sizes, time.call());
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    check_size(sizes[rank], static_cast<int>(rank), call, mine.error);
  }
  return {sizes.begin(), sizes.end()};
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

// The objects that a root scatters, one after the other.
struct Batch {
  Contribution all;
  std::vector<std::size_t> sizes;
};

Batch try_encode_batch(std::span<const Object> objects, int ranks) {
  Batch batch;
  try {
    if (objects.size() != static_cast<std::size_t>(ranks)) {
      throw InvalidArgument(
          fmt::format("scatter_object: the root passed {} objects for {} ranks; pass one a rank",
                      objects.size(),
                      ranks));
    }
    for (const Object& object : objects) {
      const Bytes bytes = encode(object);
      batch.sizes.push_back(bytes.size());
      batch.all.bytes.insert(batch.all.bytes.end(), bytes.begin(), bytes.end());
    }
  } catch (...) {
    batch.all.error = std::current_exception();
  }
  return batch;
}

}  // namespace

Object broadcast_object(Communicator& comm, const Object& object, const RootOptions& options) {
  const TimeLeft time(comm, options.deadline);
  const bool is_root = comm.rank() == options.root;
  Contribution mine = is_root ? try_encode(object) : Contribution{};
  std::uint64_t size = mine.size();
  comm.broadcast(scalar(size), time.root(options.root));
  check_size(size, options.root, "broadcast_object", mine.error);
  mine.bytes.resize(size);
  comm.broadcast(mine.bytes, time.root(options.root));
  return is_root ? object : decode(mine.bytes);
}

std::vector<Object> gather_object(Communicator& comm,
                                  const Object& object,
                                  const RootOptions& options) {
  const TimeLeft time(comm, options.deadline);
  const Contribution mine = try_encode(object);
  const auto sizes = exchange_sizes(comm, mine, "gather_object", time);
  if (comm.rank() != options.root) {
    comm.gather_v(mine.bytes, ArrayView(), Parts{.counts = sizes}, time.root(options.root));
    return {};
  }
  Bytes all(total(sizes));
  comm.gather_v(mine.bytes, all, Parts{.counts = sizes}, time.root(options.root));
  return decode_parts(all, sizes);
}

std::vector<Object> all_gather_object(Communicator& comm,
                                      const Object& object,
                                      const CallOptions& options) {
  const TimeLeft time(comm, options.deadline);
  const Contribution mine = try_encode(object);
  const auto sizes = exchange_sizes(comm, mine, "all_gather_object", time);
  Bytes all(total(sizes));
  comm.all_gather_v(mine.bytes, all, Parts{.counts = sizes}, time.call());
  return decode_parts(all, sizes);
}

Object scatter_object(Communicator& comm,
                      std::span<const Object> objects,
                      const RootOptions& options) {
  const TimeLeft time(comm, options.deadline);
  const bool is_root = comm.rank() == options.root;
  const Batch batch = is_root ? try_encode_batch(objects, comm.size()) : Batch{};
  std::vector<std::uint64_t> sizes(batch.sizes.begin(), batch.sizes.end());
  if (batch.all.error) sizes.assign(static_cast<std::size_t>(comm.size()), kRefused);
  std::uint64_t size = 0;
  comm.scatter(sizes, scalar(size), time.root(options.root));
  check_size(size, options.root, "scatter_object", batch.all.error);
  Bytes bytes(size);
  comm.scatter_v(batch.all.bytes, Parts{.counts = batch.sizes}, bytes, time.root(options.root));
  return decode(bytes);
}

}  // namespace hocket
