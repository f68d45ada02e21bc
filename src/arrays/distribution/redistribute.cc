#include "hocket/redistribute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "calls/call/request.h"
#include "calls/world/array_calls.h"
#include "foundation/base/enumerator.h"
#include "hocket/error.h"

namespace hocket {
namespace {

// Limit of the axes, so that a rank's description has a constant size.
constexpr std::size_t kMostAxes = 8;

// A rank's boxes, as the ranks exchange them.
struct Said {
  std::int64_t axes = 0;
  std::int64_t order = 0;
  // The lower and the upper corner of the source box, then the corners of the target box.
  std::array<std::int64_t, 4 * kMostAxes> corners{};

  Box box(std::size_t which) const {
    const auto n = static_cast<std::size_t>(axes);
    const auto* at = corners.data() + 2 * which * kMostAxes;
    return {Extents(at, at + n), Extents(at + kMostAxes, at + kMostAxes + n)};
  }
};

Said say(const Box& from, const Box& to, MemoryOrder order) {
  Said said{.axes = static_cast<std::int64_t>(from.axes()),
            .order = static_cast<std::int64_t>(order)};
  auto* at = said.corners.data();
  for (const Extents* corner : {&from.lower(), &from.upper(), &to.lower(), &to.upper()}) {
    std::copy(corner->begin(), corner->end(), at);
    at += kMostAxes;
  }
  return said;
}

// A box within an array that holds a larger one, as runs of bytes.
class Runs {
 public:
  Runs(const Box& part, const Box& array, MemoryOrder order) {
    Extents shape = array.shape(), sides = part.shape(), offset(part.axes());
    for (std::size_t i = 0; i < offset.size(); ++i) {
      offset[i] = part.lower()[i] - array.lower()[i];
    }
    if (order == MemoryOrder::kFortran) {
      std::reverse(shape.begin(), shape.end());
      std::reverse(sides.begin(), sides.end());
      std::reverse(offset.begin(), offset.end());
    }
    std::size_t stride = 1;
    std::vector<std::size_t> strides(shape.size());
    for (std::size_t i = shape.size(); i-- > 0;) {
      strides[i] = stride;
      stride *= shape[i];
    }
    first_ = std::inner_product(offset.begin(), offset.end(), strides.begin(), std::size_t{0});
    // Inner axes that the box covers completely make the run longer.
    std::size_t inner = shape.size();
    while (inner > 0) {
      --inner;
      run_ *= sides[inner];
      if (sides[inner] != shape[inner]) break;
    }
    sides_.assign(sides.begin(), sides.begin() + static_cast<std::ptrdiff_t>(inner));
    strides_.assign(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(inner));
  }

  // Calls `f(offset, bytes)` for each run, in order. The offset is in bytes.
  template <typename F>
  void each(std::size_t element, F&& f) const {
    if (run_ == 0 || count_of(sides_) == 0) return;
    Extents at(sides_.size(), 0);
    while (true) {
      const std::size_t place = std::inner_product(at.begin(), at.end(), strides_.begin(), first_);
      f(place * element, run_ * element);
      std::size_t i = at.size();
      while (i > 0 && ++at[i - 1] == sides_[i - 1]) at[--i] = 0;
      if (i == 0) return;
    }
  }

 private:
  std::size_t first_ = 0, run_ = 1;
  Extents sides_, strides_;
};

// The data that is exchanged with one rank.
struct Share {
  std::size_t count = 0;
  Runs runs;
};

// Throws the same error on every rank, because all ranks check the same data.
Box check(const std::vector<Said>& all) {
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r].axes != all[0].axes) {
      throw InvalidArgument(fmt::format(
          "rank {} has boxes of {} axes, and rank 0 of {}", r, all[r].axes, all[0].axes));
    }
    if (all[r].order != all[0].order) {
      throw InvalidArgument(fmt::format("rank {} has the other memory order than rank 0", r));
    }
  }
  Box held, wanted;
  std::size_t held_count = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    held = hull(held, all[r].box(0));
    wanted = hull(wanted, all[r].box(1));
    held_count += all[r].box(0).count();
    for (std::size_t q = 0; q < r; ++q) {
      if (!intersection(all[r].box(0), all[q].box(0)).is_empty()) {
        throw InvalidArgument(fmt::format("ranks {} and {} both hold {}",
                                          q,
                                          r,
                                          to_string(intersection(all[r].box(0), all[q].box(0)))));
      }
    }
  }
  if (held_count != held.count()) {
    throw InvalidArgument(fmt::format("the boxes that are held have {} elements, and {} has {}",
                                      held_count,
                                      to_string(held),
                                      held.count()));
  }
  if (!wanted.is_empty() && !(intersection(wanted, held) == wanted)) {
    throw InvalidArgument(fmt::format("the boxes that are wanted reach over {}, and held is {}",
                                      to_string(wanted),
                                      to_string(held)));
  }
  return held;
}

bool is_countable(const Box& box) {
  std::size_t room = std::size_t{1} << 60;  // elements still allowed, so that sums do not overflow
  for (const std::size_t extent : box.shape()) {
    if (extent == 0) return true;
    room /= extent;
  }
  return room != 0;
}

void check_mine(const Box& from, const Box& to) {
  if (from.axes() < 1 || from.axes() > kMostAxes || to.axes() != from.axes()) {
    throw InvalidArgument(
        fmt::format("the boxes have {} and {} axes, expected the same number, 1 to {}",
                    from.axes(),
                    to.axes(),
                    kMostAxes));
  }
  for (const Box* box : {&from, &to}) {
    if (is_countable(*box)) continue;
    throw InvalidArgument(to_string(*box) + " has more elements than can be counted");
  }
}

}  // namespace

struct Redistribution::Plan {
  Communicator comm;  // another handle of the given communicator
  std::optional<Duration> deadline;
  Box whole;
  std::size_t in_count = 0, out_count = 0;
  std::vector<Share> sends, receives;  // by rank
  std::vector<std::byte> packed, received;

  std::vector<std::size_t> counts(const std::vector<Share>& shares) const {
    std::vector<std::size_t> result;
    for (const Share& share : shares) result.push_back(share.count);
    return result;
  }
};

Redistribution::Redistribution(Communicator& comm,
                               const Box& from,
                               const Box& to,
                               const RedistributeOptions& options) {
  const auto call = world::whole_call(comm, engine::Kind::kRedistribute);
  try {
    check_mine(from, to);
    base::require_enumerator(options.order, MemoryOrder::kFortran, "order", "MemoryOrder");
  } catch (const InvalidArgument& error) {
    comm.refuse(error.what());
  }
  const Said mine = say(from, to, options.order);
  std::vector<Said> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)),
                  std::as_writable_bytes(std::span(all)),
                  {.deadline = options.deadline});
  plan_ =
      std::make_unique<Plan>(Plan{.comm = Communicator(comm.impl()), .deadline = options.deadline});
  plan_->whole = check(all);
  plan_->in_count = from.count();
  plan_->out_count = to.count();
  for (const Said& other : all) {
    const Box sent = intersection(from, other.box(1)), got = intersection(other.box(0), to);
    plan_->sends.push_back({sent.count(), Runs(sent, from, options.order)});
    plan_->receives.push_back({got.count(), Runs(got, to, options.order)});
  }
}

Redistribution::Redistribution(Redistribution&&) noexcept = default;
Redistribution& Redistribution::operator=(Redistribution&&) noexcept = default;
Redistribution::~Redistribution() = default;

const Box& Redistribution::whole() const { return plan_->whole; }

void Redistribution::operator()(ConstArrayView in, ArrayView out) {
  Plan& plan = *plan_;
  const auto call = world::whole_call(plan.comm, engine::Kind::kRedistribute);
  const auto refuse = [&](const std::string& reason) { plan.comm.refuse(reason); };
  if (in.memory() == MemoryKind::kCuda || out.memory() == MemoryKind::kCuda) {
    refuse("redistribution is of arrays in host memory");
  }
  for (const std::string& fault : {call::fault_of(in, "in"), call::fault_of(out, "out")}) {
    if (!fault.empty()) refuse(fault);
  }
  if (in.count() != plan.in_count || out.count() != plan.out_count) {
    refuse(fmt::format("in has {} elements and out {}, expected {} and {} as the boxes",
                       in.count(),
                       out.count(),
                       plan.in_count,
                       plan.out_count));
  }
  if (in.dtype() != out.dtype()) {
    refuse(fmt::format("in is {} and out {}", name_of(in.dtype()), name_of(out.dtype())));
  }
  const std::size_t element = size_of(in.dtype());
  const auto out_counts = plan.counts(plan.receives), in_counts = plan.counts(plan.sends);
  // An element that several ranks want is sent to each of them. Unwanted elements are not sent.
  plan.packed.resize(std::accumulate(in_counts.begin(), in_counts.end(), std::size_t{0}) * element);
  plan.received.resize(out.bytes());
  std::size_t sent = 0;
  for (const Share& share : plan.sends) {
    if (share.count == 0) continue;
    share.runs.each(element, [&](std::size_t at, std::size_t bytes) {
      std::memcpy(plan.packed.data() + sent, static_cast<const std::byte*>(in.data()) + at, bytes);
      sent += bytes;
    });
  }
  plan.comm.all_to_all_v(ConstArrayView(plan.packed.data(), sent / element, in.dtype()),
                         {.counts = in_counts},
                         ArrayView(plan.received.data(), out.count(), in.dtype()),
                         {.counts = out_counts},
                         {.deadline = plan.deadline});
  std::size_t got = 0;
  for (const Share& share : plan.receives) {
    if (share.count == 0) continue;
    share.runs.each(element, [&](std::size_t at, std::size_t bytes) {
      std::memcpy(static_cast<std::byte*>(out.data()) + at, plan.received.data() + got, bytes);
      got += bytes;
    });
  }
}

void redistribute(Communicator& comm,
                  ConstArrayView in,
                  const Box& from,
                  ArrayView out,
                  const Box& to,
                  const RedistributeOptions& options) {
  Redistribution plan(comm, from, to, options);
  plan(in, out);
}

}  // namespace hocket
