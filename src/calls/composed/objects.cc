// The collectives of objects. They send sizes first, then bytes, both with the communicator's
// public calls.
//
// No rank leaves the first call before all have entered it. A rank that cannot continue, because
// its object cannot be encoded or it lacks memory, refuses the next call. All ranks then leave
// together.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>

#include "calls/call/membership.h"
#include "calls/composed/counts.h"
#include "calls/world/communicator_impl.h"
#include "foundation/base/deadline.h"
#include "hocket/communicator.h"
#include "hocket/error.h"
#include "hocket/object.h"

namespace hocket {
namespace {

using Bytes = std::vector<std::byte>;
using call::Request;
using engine::Kind;

// See CommunicatorImpl::before_call.
template <typename Part>
auto before_call(Communicator& comm, const Part& part) {
  return comm.impl()->before_call(Kind::kNone, part);
}

// The time limit of a call that consists of several parts.
class TimeLeft {
 public:
  TimeLeft(const Communicator& comm, const std::optional<Duration>& deadline)
      : given_(deadline.value_or(comm.deadline())), end_(base::Deadline::in(given_)) {}
  CallOptions call() const { return {.deadline = left()}; }
  RootOptions root(int rank) const { return {.root = rank, .deadline = left()}; }

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

// A rank's bytes, and memory for the sizes of all ranks. For the root of a scatter: the bytes of
// all objects, and their sizes.
struct Contribution {
  Bytes bytes;
  Sizes sizes;
};

// Encodes this rank's object if it `sends`; else the bytes are empty.
Contribution contribution_of(const Communicator& comm, const Object& object, bool sends = true) {
  return {.bytes = sends ? encode(object) : Bytes(), .sizes = room_for_all(comm)};
}
Contribution contribution_to_root(const Communicator& comm, const Object& object, int root) {
  call::require_rank("root", root, comm.size());
  return contribution_of(comm, object);
}
Contribution contribution_of_root(const Communicator& comm, const Object& object, int root) {
  call::require_rank("root", root, comm.size());
  return contribution_of(comm, object, comm.rank() == root);
}

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

// Encodes the objects that a root scatters, one after the other, with their sizes.
Contribution batch_of_root(const Communicator& comm, std::span<const Object> objects, int root) {
  call::require_rank("root", root, comm.size());
  if (comm.rank() != root) return {.bytes = {}, .sizes = room_for_all(comm)};
  if (objects.size() != static_cast<std::size_t>(comm.size())) {
    throw InvalidArgument(fmt::format(
        "the root passed {} objects for {} ranks; pass one a rank", objects.size(), comm.size()));
  }
  Contribution batch;
  for (const Object& object : objects) {
    const Bytes bytes = encode(object);
    batch.sizes.push_back(bytes.size());
    batch.bytes.insert(batch.bytes.end(), bytes.begin(), bytes.end());
  }
  return batch;
}

// The memory of a call that has been started.
struct Started {
  Contribution mine;
  std::uint64_t size = 0;
  Sizes sizes;  // for a scatter: sizes of the objects, by rank
  Bytes all;
};
using Shared = std::shared_ptr<Started>;

ConstArrayView view(const Bytes& bytes) { return {bytes.data(), bytes.size(), DType::kUInt8}; }
ArrayView view(Bytes& bytes) { return {bytes.data(), bytes.size(), DType::kUInt8}; }
ArrayView view(Sizes& sizes) { return {sizes.data(), sizes.size(), DType::kUInt64}; }

// Starts the exchange of sizes, and the call that `second` describes once the sizes are known.
template <typename First, typename Second>
Work start(Communicator& comm,
           Kind whole,
           std::optional<Duration> deadline,
           const Shared& made,
           First first,
           Second second) {
  return Work(comm.impl()->start_two_parts({.whole = whole,
                                            .first = std::move(first),
                                            .second = std::move(second),
                                            .deadline = deadline,
                                            .keep = made}));
}

Request exchange_of_sizes(Started& made, const std::optional<Duration>& deadline) {
  made.size = made.mine.bytes.size();
  return {.kind = Kind::kAllGather,
          .in = {&made.size, 1, DType::kUInt64},
          .out = view(made.mine.sizes),
          .deadline = deadline};
}

}  // namespace

Object broadcast_object(Communicator& comm, const Object& object, const RootOptions& options) {
  const call::Core::Whole whole(*comm.impl(), Kind::kBroadcastObject);
  const TimeLeft time(comm, options.deadline);
  const bool is_root = comm.rank() == options.root;
  auto mine = before_call(comm, [&] { return contribution_of_root(comm, object, options.root); });
  exchange_sizes(comm, mine, time);
  before_call(comm, [&] { mine.bytes.resize(mine.sizes[static_cast<std::size_t>(options.root)]); });
  comm.broadcast(mine.bytes, time.root(options.root));
  return is_root ? object : decode(mine.bytes);
}

std::vector<Object> gather_object(Communicator& comm,
                                  const Object& object,
                                  const RootOptions& options) {
  const call::Core::Whole whole(*comm.impl(), Kind::kGatherObject);
  const TimeLeft time(comm, options.deadline);
  auto mine = before_call(comm, [&] { return contribution_to_root(comm, object, options.root); });
  exchange_sizes(comm, mine, time);
  if (comm.rank() != options.root) {
    comm.gather_v(mine.bytes, ArrayView(), Parts{.counts = mine.sizes}, time.root(options.root));
    return std::vector<Object>();
  }
  auto all = before_call(comm, [&] { return Bytes(total(mine.sizes)); });
  comm.gather_v(mine.bytes, all, Parts{.counts = mine.sizes}, time.root(options.root));
  return decode_parts(all, mine.sizes);
}

std::vector<Object> all_gather_object(Communicator& comm,
                                      const Object& object,
                                      const CallOptions& options) {
  const call::Core::Whole whole(*comm.impl(), Kind::kAllGatherObject);
  const TimeLeft time(comm, options.deadline);
  auto mine = before_call(comm, [&] { return contribution_of(comm, object); });
  exchange_sizes(comm, mine, time);
  auto all = before_call(comm, [&] { return Bytes(total(mine.sizes)); });
  comm.all_gather_v(mine.bytes, all, Parts{.counts = mine.sizes}, time.call());
  return decode_parts(all, mine.sizes);
}

Object scatter_object(Communicator& comm,
                      std::span<const Object> objects,
                      const RootOptions& options) {
  const call::Core::Whole whole(*comm.impl(), Kind::kScatterObject);
  const TimeLeft time(comm, options.deadline);
  Sizes sizes;  // sizes of the objects, by rank
  auto mine = before_call(comm, [&] {
    sizes = room_for_all(comm);
    return batch_of_root(comm, objects, options.root);
  });
  comm.all_to_all(mine.sizes, sizes, time.call());
  auto bytes =
      before_call(comm, [&] { return Bytes(sizes[static_cast<std::size_t>(options.root)]); });
  comm.scatter_v(mine.bytes, Parts{.counts = mine.sizes}, bytes, time.root(options.root));
  return decode(bytes);
}

// --- Without waiting ----------------------------------------------------------------------------

ObjectWork<Object> broadcast_object_async(Communicator& comm,
                                          const Object& object,
                                          const RootOptions& options) {
  const auto made = std::make_shared<Started>();
  const bool is_root = comm.rank() == options.root;
  Work work = start(
      comm,
      Kind::kBroadcastObject,
      options.deadline,
      made,
      [&] {
        made->mine = contribution_of_root(comm, object, options.root);
        return exchange_of_sizes(*made, options.deadline);
      },
      [&its = *made, root = options.root, deadline = options.deadline] {
        its.mine.bytes.resize(its.mine.sizes[static_cast<std::size_t>(root)]);
        return Request{.kind = Kind::kBroadcast,
                       .out = view(its.mine.bytes),
                       .in_place = true,
                       .root = root,
                       .deadline = deadline};
      });
  return {std::move(work),
          [made, object, is_root] { return is_root ? object : decode(made->mine.bytes); }};
}

ObjectWork<std::vector<Object>> gather_object_async(Communicator& comm,
                                                    const Object& object,
                                                    const RootOptions& options) {
  const auto made = std::make_shared<Started>();
  const bool is_root = comm.rank() == options.root;
  Work work = start(
      comm,
      Kind::kGatherObject,
      options.deadline,
      made,
      [&] {
        made->mine = contribution_to_root(comm, object, options.root);
        return exchange_of_sizes(*made, options.deadline);
      },
      [&its = *made, is_root, root = options.root, deadline = options.deadline] {
        if (is_root) its.all.resize(total(its.mine.sizes));
        return Request{.kind = Kind::kGatherV,
                       .in = view(std::as_const(its.mine.bytes)),
                       .out = is_root ? view(its.all) : ArrayView(),
                       .root = root,
                       .out_parts = {.counts = its.mine.sizes},
                       .deadline = deadline};
      });
  return {std::move(work), [made, is_root] {
            return is_root ? decode_parts(made->all, made->mine.sizes) : std::vector<Object>();
          }};
}

ObjectWork<std::vector<Object>> all_gather_object_async(Communicator& comm,
                                                        const Object& object,
                                                        const CallOptions& options) {
  const auto made = std::make_shared<Started>();
  Work work = start(
      comm,
      Kind::kAllGatherObject,
      options.deadline,
      made,
      [&] {
        made->mine = contribution_of(comm, object);
        return exchange_of_sizes(*made, options.deadline);
      },
      [&its = *made, deadline = options.deadline] {
        its.all.resize(total(its.mine.sizes));
        return Request{.kind = Kind::kAllGatherV,
                       .in = view(std::as_const(its.mine.bytes)),
                       .out = view(its.all),
                       .out_parts = {.counts = its.mine.sizes},
                       .deadline = deadline};
      });
  return {std::move(work), [made] { return decode_parts(made->all, made->mine.sizes); }};
}

ObjectWork<Object> scatter_object_async(Communicator& comm,
                                        std::span<const Object> objects,
                                        const RootOptions& options) {
  const auto made = std::make_shared<Started>();
  Work work = start(
      comm,
      Kind::kScatterObject,
      options.deadline,
      made,
      [&] {
        made->sizes = room_for_all(comm);
        made->mine = batch_of_root(comm, objects, options.root);
        return composed::exchange_of_counts(made->mine.sizes, made->sizes, options.deadline);
      },
      [&its = *made, root = options.root, deadline = options.deadline] {
        its.all.resize(its.sizes[static_cast<std::size_t>(root)]);
        return Request{.kind = Kind::kScatterV,
                       .in = view(std::as_const(its.mine.bytes)),
                       .out = view(its.all),
                       .root = root,
                       .in_parts = {.counts = its.mine.sizes},
                       .deadline = deadline};
      });
  return {std::move(work), [made] { return decode(made->all); }};
}

}  // namespace hocket
