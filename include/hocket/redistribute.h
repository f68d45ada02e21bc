// Moving an array from one distribution to another.
#pragma once

#include <memory>
#include <optional>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/distribution.h"
#include "hocket/held.h"

namespace hocket {

struct RedistributeOptions {
  MemoryOrder order = MemoryOrder::kC;  // how the elements of a box lie; kAny is kC
  std::optional<Duration> deadline = {};
};

// A resource: a redistribution to be made again and again, on one communicator, which it keeps
// alive; one thread. Each rank holds the box `from` of an array and wants the box `to` of it. Host
// memory.
class [[nodiscard("it is gone, and has moved nothing: keep it and call it")]] Redistribution {
 public:
  // Collective: boxes and order of all ranks are compared. Throws InvalidArgument, the same on all
  // ranks, where numbers of axes or orders differ, boxes that are held overlap or leave a gap, or
  // one that is wanted reaches beyond what is held.
  Redistribution(Communicator& comm,
                 const Box& from,
                 const Box& to,
                 const RedistributeOptions& options = {});
  Redistribution(Redistribution&&) noexcept;
  Redistribution& operator=(Redistribution&&) noexcept;
  ~Redistribution();

  // Collective: one all_to_all_v. `in` has as many elements as `from`, `out` as `to`; they must not
  // overlap.
  void operator()(ConstArrayView in, ArrayView out);

  // The whole array: the hull of all boxes.
  const Box& whole() const;

 private:
  struct Plan;
  Held<"Redistribution", std::unique_ptr<Plan>> plan_;
};

// The same once.
void redistribute(Communicator& comm,
                  ConstArrayView in,
                  const Box& from,
                  ArrayView out,
                  const Box& to,
                  const RedistributeOptions& options = {});

}  // namespace hocket
