// Moves an array from one distribution to another.
#pragma once

#include <memory>
#include <optional>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/distribution.h"
#include "hocket/held.h"

namespace hocket {

struct RedistributeOptions {
  MemoryOrder order = MemoryOrder::kC;  // order of the elements in a box; kAny is kC
  std::optional<Duration> deadline = {};
};

// A resource: a redistribution that can be repeated on one communicator, which it keeps alive. One
// thread may use it at a time. Each rank passes the box `from` of an array and gets the box `to`.
// Arrays lie in host memory.
class [[nodiscard("it is gone, and has moved nothing: keep it and call it")]] Redistribution {
 public:
  // Makes the plan. Collective: boxes and order of all ranks are compared.
  // @param comm The communicator.
  // @param from The box that this rank passes.
  // @param to The box that this rank gets.
  // @param options See RedistributeOptions.
  // @throws InvalidArgument on all ranks if numbers of axes or orders differ, boxes of `from`
  //   overlap or leave a gap, or a box of `to` reaches beyond them.
  Redistribution(Communicator& comm,
                 const Box& from,
                 const Box& to,
                 const RedistributeOptions& options = {});
  Redistribution(Redistribution&&) noexcept;
  Redistribution& operator=(Redistribution&&) noexcept;
  ~Redistribution();

  // Moves the elements. Collective: one all_to_all_v.
  // @param in The elements of `from`.
  // @param out The elements of `to`. It must not overlap `in`.
  void operator()(ConstArrayView in, ArrayView out);

  // Returns the box of the whole array: the hull of all boxes.
  const Box& whole() const;

 private:
  struct Plan;
  Held<"Redistribution", std::unique_ptr<Plan>> plan_;
};

// Makes a plan and uses it once.
void redistribute(Communicator& comm,
                  ConstArrayView in,
                  const Box& from,
                  ArrayView out,
                  const Box& to,
                  const RedistributeOptions& options = {});

}  // namespace hocket
