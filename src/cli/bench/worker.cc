#include "cli/bench/worker.h"

#include <algorithm>

#include "cli/bench/libraries.h"
#include "cli/bench/peer.h"
#include "hocket/hocket.h"

namespace hocket::cli::bench {
namespace {

// A resource: this process's part in the job. One thread. Fails with hocket's errors.
class Hocket final : public Library {
 public:
  Hocket() : world_(init()), comm_(world_.communicator()) {}

  Seat seat() const override { return {comm_.rank(), comm_.size()}; }
  std::string name() const override { return std::string(kHocket); }
  std::string version() const override {
    std::string text = "hocket " HOCKET_VERSION;
    for (const std::string& engine : world_.engines()) text += " " + engine;
    return text;
  }
  void barrier() override { comm_.barrier(); }

  std::optional<std::string> refusal(const Case& subject) const override {
    if (reduces(subject.collective) && !is_defined(subject.op, subject.dtype)) {
      return std::string(hocket::name_of(subject.op)) + " has no meaning on " +
             std::string(hocket::name_of(subject.dtype));
    }
    return std::nullopt;
  }

  Bound bind(const Case& subject) override {
    Bound bound;
    if (subject.memory == Memory::kSymmetric) {
      bind_symmetric_arrays(bound, subject);
    } else {
      bind_ordinary_arrays(bound, subject, seat());
    }
    const Shape shape = shape_of(subject, seat().rank, seat().ranks);
    const ConstArrayView in(bound.arrays.in, shape.in, subject.dtype);
    const ArrayView out(bound.arrays.out, shape.out, subject.dtype);
    bound.calls = subject.in_place ? in_place(subject, out) : out_of_place(subject, in, out);
    return bound;
  }

 private:
  // Symmetric arrays have one size on all ranks: the largest that any rank needs.
  void bind_symmetric_arrays(Bound& bound, const Case& subject) {
    Shape largest;
    for (int rank = 0; rank < seat().ranks; ++rank) {
      const Shape shape = shape_of(subject, rank, seat().ranks);
      largest.in = std::max(largest.in, shape.in);
      largest.out = std::max(largest.out, shape.out);
    }
    const auto make = [&](std::size_t count) -> void* {
      if (count == 0) return nullptr;
      SymmetricArray array = comm_.symmetric().empty(count, subject.dtype);
      bound.owners.push_back(array.owner());
      return array.local().data();
    };
    bound.arrays.in = make(largest.in);
    bound.arrays.out = make(largest.out);
  }

  template <typename F>
  static std::function<void(long)> repeated(F call) {
    return [call](long n) {
      for (long i = 0; i < n; ++i) call();
    };
  }

  std::function<void(long)> in_place(const Case& subject, ArrayView array) {
    Communicator& comm = comm_;
    const ReduceOp op = subject.op;
    switch (subject.collective) {
      case Collective::kAllReduce:
        return repeated([&comm, array, op] { comm.all_reduce(array, {.op = op}); });
      case Collective::kReduce:
        return repeated([&comm, array, op] { comm.reduce(array, {.op = op, .root = kRoot}); });
      case Collective::kReduceScatter:
        return repeated([&comm, array, op] { comm.reduce_scatter(array, {.op = op}); });
      case Collective::kBroadcast:
        return repeated([&comm, array] { comm.broadcast(array, {.root = kRoot}); });
      case Collective::kAllGather:
        return repeated([&comm, array] { comm.all_gather(array); });
      case Collective::kGather:
        return repeated([&comm, array] { comm.gather(array, {.root = kRoot}); });
      case Collective::kScatter:
        return repeated([&comm, array] { comm.scatter(array, {.root = kRoot}); });
      case Collective::kAllToAll:
        return repeated([&comm, array] { comm.all_to_all(array); });
      case Collective::kSend:
      case Collective::kSendRecv:
      case Collective::kBarrier:
        break;
    }
    throw InvalidArgument("hocket bench: this call is not made in place");
  }

  std::function<void(long)> out_of_place(const Case& subject, ConstArrayView in, ArrayView out) {
    Communicator& comm = comm_;
    const ReduceOp op = subject.op;
    switch (subject.collective) {
      case Collective::kAllReduce:
        return repeated([&comm, in, out, op] { comm.all_reduce(in, out, {.op = op}); });
      case Collective::kReduce:
        return repeated([&comm, in, out, op] { comm.reduce(in, out, {.op = op, .root = kRoot}); });
      case Collective::kReduceScatter:
        return repeated([&comm, in, out, op] { comm.reduce_scatter(in, out, {.op = op}); });
      case Collective::kBroadcast:
        return in_place(subject, out);
      case Collective::kAllGather:
        return repeated([&comm, in, out] { comm.all_gather(in, out); });
      case Collective::kGather:
        return repeated([&comm, in, out] { comm.gather(in, out, {.root = kRoot}); });
      case Collective::kScatter:
        return repeated([&comm, in, out] { comm.scatter(in, out, {.root = kRoot}); });
      case Collective::kAllToAll:
        return repeated([&comm, in, out] { comm.all_to_all(in, out); });
      case Collective::kSend:
      case Collective::kSendRecv:
        return message(subject, in, out);
      case Collective::kBarrier:
        return repeated([&comm] { comm.barrier(); });
    }
    throw InvalidArgument("hocket bench: unknown call");
  }

  std::function<void(long)> message(const Case& subject, ConstArrayView in, ArrayView out) {
    Communicator& comm = comm_;
    const auto [rank, ranks] = seat();
    if (subject.collective == Collective::kSendRecv) {
      const int next = (rank + 1) % ranks;
      const int previous = (rank + ranks - 1) % ranks;
      return repeated(
          [&comm, in, out, next, previous] { comm.send_recv(in, next, out, previous); });
    }
    if (rank > 1) return [](long) {};
    if (rank == 1) return repeated([&comm, in, out] { comm.recv(out, 0), comm.send(in, 0); });
    return repeated([&comm, in, out] { comm.send(in, 1), comm.recv(out, 1); });
  }

  World world_;
  Communicator& comm_;
};

}  // namespace

int run_worker() {
  Hocket hocket;
  return serve(hocket);
}

}  // namespace hocket::cli::bench
