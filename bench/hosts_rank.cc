// One rank of bench/hosts.py whose calls hocket carries.
#include "hosts_rank.h"

#include <hocket/hocket.h>

namespace {

class Hocket {
 public:
  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }
  void barrier() { comm_.barrier(); }
  void call(hosts::Case& each) {
    switch (each.kind) {
      case hosts::Kind::kAllReduce:
        return comm_.all_reduce(each.in, each.out);
      case hosts::Kind::kAllGather:
        return comm_.all_gather(each.in, each.out);
      case hosts::Kind::kReduceScatter:
        return comm_.reduce_scatter(each.in, each.out);
      case hosts::Kind::kBroadcast:
        return comm_.broadcast(each.out);
      case hosts::Kind::kAllToAll:
        return comm_.all_to_all(each.in, each.out);
    }
  }

 private:
  hocket::World world_ = hocket::init();
  hocket::Communicator& comm_ = world_.communicator();
};

}  // namespace

int main(int, char** argv) {
  Hocket library;
  return hosts::serve(argv, library);
}
