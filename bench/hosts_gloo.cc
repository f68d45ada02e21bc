// One rank of bench/hosts.py whose calls Gloo carries. The ranks meet in the folder of the pipes.
// Arguments after those of `serve`: the rank, the number of ranks, and this host's address.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "hosts_rank.h"

namespace {

class Gloo {
 public:
  explicit Gloo(char** argv)
      : context_(
            std::make_shared<gloo::rendezvous::Context>(std::stoi(argv[3]), std::stoi(argv[4]))) {
    gloo::rendezvous::FileStore store(std::string(argv[1]) + "/gloo-store");
    gloo::transport::tcp::attr address(argv[5]);
    auto device = gloo::transport::tcp::CreateDevice(address);
    context_->setTimeout(std::chrono::hours(1));
    context_->connectFullMesh(store, device);
  }

  int rank() const { return context_->rank; }
  int size() const { return context_->size; }
  void barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void call(hosts::Case& each) {
    switch (each.kind) {
      case hosts::Kind::kAllReduce: {
        gloo::AllreduceOptions options(context_);
        options.setInput(each.in.data(), each.in.size());
        options.setOutput(each.out.data(), each.out.size());
        using Sum = void (*)(void*, const void*, const void*, std::size_t);
        options.setReduceFunction(static_cast<Sum>(gloo::sum<float>));
        return gloo::allreduce(options);
      }
      case hosts::Kind::kAllGather:
        return moved<gloo::AllgatherOptions>(gloo::allgather, each);
      case hosts::Kind::kAllToAll:
        return moved<gloo::AlltoallOptions>(gloo::alltoall, each);
      case hosts::Kind::kBroadcast: {
        gloo::BroadcastOptions options(context_);
        options.setOutput(each.out.data(), each.out.size());
        options.setRoot(0);
        return gloo::broadcast(options);
      }
      case hosts::Kind::kReduceScatter:  // Gloo has no reduce_scatter
        break;
    }
  }

 private:
  template <typename Options>
  void moved(void (*call)(Options&), hosts::Case& each) {
    Options options(context_);
    options.setInput(each.in.data(), each.in.size());
    options.setOutput(each.out.data(), each.out.size());
    call(options);
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
};

}  // namespace

int main(int, char** argv) {
  Gloo library(argv);
  return hosts::serve(argv, library);
}
