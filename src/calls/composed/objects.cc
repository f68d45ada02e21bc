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

// The facts of an error of one part of `call`, with the name of the whole.
Status of_whole(const char* call, const Error& error) {
  Status status = error.status();
  status.operation = call;
  status.message = fmt::format("{}: {}", call, status.message);
  return status;
}

// Runs the parts of `call`. Their errors name it: the program has made no other call.
template <typename Parts>
auto whole_call(const char* call, const Parts& parts) {
  try {
    return parts();
  } catch (const PeerDied& e) {
    throw PeerDied(of_whole(call, e), e.rank(), e.pid(), e.signal());
  } catch (const DeadlockError& e) {
    throw DeadlockError(of_whole(call, e), e.missing(), e.calls());
  } catch (const DeadlineExceeded& e) {
    throw DeadlineExceeded(of_whole(call, e), e.missing(), e.calls());
  } catch (const Mismatch& e) {
    throw Mismatch(of_whole(call, e), e.calls());
  } catch (const Aborted& e) {
    throw Aborted(of_whole(call, e));
  }  // a refusal names it already: see before_call
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

// The memory of a call that has been started.
struct Started {
  Bytes mine;
  std::uint64_t size = 0;
  Sizes counts;  // the parts of `mine`, if it has several
  Sizes sizes;   // of all ranks' parts
  Bytes all;
};
using Shared = std::shared_ptr<Started>;

ConstArrayView view(const Bytes& bytes) { return {bytes.data(), bytes.size(), DType::kUInt8}; }
ArrayView view(Bytes& bytes) { return {bytes.data(), bytes.size(), DType::kUInt8}; }
ArrayView view(Sizes& sizes) { return {sizes.data(), sizes.size(), DType::kUInt64}; }

// Starts the exchange of sizes, and the call that `second` describes once they are known.
template <typename First, typename Second>
Work start(Communicator& comm,
           const char* call,
           Kind kind,
           std::optional<Duration> deadline,
           const Shared& made,
           First first,
           Second second) {
  const auto named = [call](const auto& part) {
    try {
      return part();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", call, error.what()));
    }
  };
  return Work(comm.impl()->start_two_parts(
      kind,
      [&] { return named(first); },
      [named, second = std::move(second)] { return named(second); },
      deadline,
      made));
}

Request exchange_of_sizes(const Communicator& comm,
                          Started& made,
                          const std::optional<Duration>& deadline) {
  made.size = made.mine.size();
  made.sizes = room_for_all(comm);
  return {.kind = Kind::kAllGather,
          .in = {&made.size, 1, DType::kUInt64},
          .out = view(made.sizes),
          .deadline = deadline};
}

}  // namespace

Object broadcast_object(Communicator& comm, const Object& object, const RootOptions& options) {
  constexpr const char* kCall = "broadcast_object";
  return whole_call(kCall, [&] {
    const TimeLeft time(comm, options.deadline);
    const bool is_root = comm.rank() == options.root;
    auto mine = before_call(comm, kCall, [&] {
      call::require_rank("root", options.root, comm.size());
      return Contribution{.bytes = is_root ? encode(object) : Bytes(), .sizes = room_for_all(comm)};
    });
    exchange_sizes(comm, mine, time);
    before_call(comm, kCall, [&] {
      mine.bytes.resize(mine.sizes[static_cast<std::size_t>(options.root)]);
    });
    comm.broadcast(mine.bytes, time.root(options.root));
    return is_root ? object : decode(mine.bytes);
  });
}

std::vector<Object> gather_object(Communicator& comm,
                                  const Object& object,
                                  const RootOptions& options) {
  constexpr const char* kCall = "gather_object";
  return whole_call(kCall, [&] {
    const TimeLeft time(comm, options.deadline);
    auto mine = before_call(comm, kCall, [&] {
      call::require_rank("root", options.root, comm.size());
      return Contribution{.bytes = encode(object), .sizes = room_for_all(comm)};
    });
    exchange_sizes(comm, mine, time);
    if (comm.rank() != options.root) {
      comm.gather_v(mine.bytes, ArrayView(), Parts{.counts = mine.sizes}, time.root(options.root));
      return std::vector<Object>();
    }
    auto all = before_call(comm, kCall, [&] { return Bytes(total(mine.sizes)); });
    comm.gather_v(mine.bytes, all, Parts{.counts = mine.sizes}, time.root(options.root));
    return decode_parts(all, mine.sizes);
  });
}

std::vector<Object> all_gather_object(Communicator& comm,
                                      const Object& object,
                                      const CallOptions& options) {
  constexpr const char* kCall = "all_gather_object";
  return whole_call(kCall, [&] {
    const TimeLeft time(comm, options.deadline);
    auto mine = before_call(comm, kCall, [&] {
      return Contribution{.bytes = encode(object), .sizes = room_for_all(comm)};
    });
    exchange_sizes(comm, mine, time);
    auto all = before_call(comm, kCall, [&] { return Bytes(total(mine.sizes)); });
    comm.all_gather_v(mine.bytes, all, Parts{.counts = mine.sizes}, time.call());
    return decode_parts(all, mine.sizes);
  });
}

Object scatter_object(Communicator& comm,
                      std::span<const Object> objects,
                      const RootOptions& options) {
  constexpr const char* kCall = "scatter_object";
  return whole_call(kCall, [&] {
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
  });
}

// --- Without waiting ----------------------------------------------------------------------------

ObjectWork<Object> broadcast_object_async(Communicator& comm,
                                          const Object& object,
                                          const RootOptions& options) {
  const auto made = std::make_shared<Started>();
  const bool is_root = comm.rank() == options.root;
  Work work = start(
      comm,
      "broadcast_object",
      Kind::kBroadcast,
      options.deadline,
      made,
      [&] {
        call::require_rank("root", options.root, comm.size());
        if (is_root) made->mine = encode(object);
        return exchange_of_sizes(comm, *made, options.deadline);
      },
      [&its = *made, root = options.root, deadline = options.deadline] {
        its.mine.resize(its.sizes[static_cast<std::size_t>(root)]);
        return Request{.kind = Kind::kBroadcast,
                       .out = view(its.mine),
                       .in_place = true,
                       .root = root,
                       .deadline = deadline};
      });
  return {std::move(work),
          [made, object, is_root] { return is_root ? object : decode(made->mine); }};
}

ObjectWork<std::vector<Object>> gather_object_async(Communicator& comm,
                                                    const Object& object,
                                                    const RootOptions& options) {
  const auto made = std::make_shared<Started>();
  const bool is_root = comm.rank() == options.root;
  Work work = start(
      comm,
      "gather_object",
      Kind::kGatherV,
      options.deadline,
      made,
      [&] {
        call::require_rank("root", options.root, comm.size());
        made->mine = encode(object);
        return exchange_of_sizes(comm, *made, options.deadline);
      },
      [&its = *made, is_root, root = options.root, deadline = options.deadline] {
        if (is_root) its.all.resize(total(its.sizes));
        return Request{.kind = Kind::kGatherV,
                       .in = view(std::as_const(its.mine)),
                       .out = is_root ? view(its.all) : ArrayView(),
                       .root = root,
                       .out_parts = {.counts = its.sizes},
                       .deadline = deadline};
      });
  return {std::move(work), [made, is_root] {
            return is_root ? decode_parts(made->all, made->sizes) : std::vector<Object>();
          }};
}

ObjectWork<std::vector<Object>> all_gather_object_async(Communicator& comm,
                                                        const Object& object,
                                                        const CallOptions& options) {
  const auto made = std::make_shared<Started>();
  Work work = start(
      comm,
      "all_gather_object",
      Kind::kAllGatherV,
      options.deadline,
      made,
      [&] {
        made->mine = encode(object);
        return exchange_of_sizes(comm, *made, options.deadline);
      },
      [&its = *made, deadline = options.deadline] {
        its.all.resize(total(its.sizes));
        return Request{.kind = Kind::kAllGatherV,
                       .in = view(std::as_const(its.mine)),
                       .out = view(its.all),
                       .out_parts = {.counts = its.sizes},
                       .deadline = deadline};
      });
  return {std::move(work), [made] { return decode_parts(made->all, made->sizes); }};
}

ObjectWork<Object> scatter_object_async(Communicator& comm,
                                        std::span<const Object> objects,
                                        const RootOptions& options) {
  const auto made = std::make_shared<Started>();
  Work work = start(
      comm,
      "scatter_object",
      Kind::kScatterV,
      options.deadline,
      made,
      [&] {
        call::require_rank("root", options.root, comm.size());
        made->counts = made->sizes = room_for_all(comm);
        if (comm.rank() == options.root) {
          Contribution batch = encode_batch(objects, comm.size());
          made->mine = std::move(batch.bytes);
          made->counts = std::move(batch.sizes);
        }
        return composed::exchange_of_counts(made->counts, made->sizes, options.deadline);
      },
      [&its = *made, root = options.root, deadline = options.deadline] {
        its.all.resize(its.sizes[static_cast<std::size_t>(root)]);
        return Request{.kind = Kind::kScatterV,
                       .in = view(std::as_const(its.mine)),
                       .out = view(its.all),
                       .root = root,
                       .in_parts = {.counts = its.counts},
                       .deadline = deadline};
      });
  return {std::move(work), [made] { return decode(made->all); }};
}

}  // namespace hocket
