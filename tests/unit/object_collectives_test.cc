// The collectives of objects, on ranks that are threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "hocket/group.h"
#include "hocket/object.h"

namespace hocket {
namespace {

// An exception in a rank fails the test through run_threads, which rethrows it.
void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Differs for every rank and salt, in size too.
Object object_of(int rank, int salt) {
  std::vector<float> values;
  for (int i = 0; i < 100 * rank + salt; ++i) values.push_back(static_cast<float>(i + rank));
  return Object{{"rank", rank},
                {"salt", salt},
                {"text", std::string(static_cast<std::size_t>(1000 * rank + salt), 'v')},
                {"values", Object::array(values)}};
}

// Deeper than an encoding may be.
Object too_deep() {
  Object object;
  for (int i = 0; i <= kMaxObjectDepth; ++i) object = Object::list({object});
  return object;
}

class ObjectCollectives : public testing::TestWithParam<int> {};

TEST_P(ObjectCollectives, Broadcast) {
  run_threads(GetParam(), [](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      const Object got = broadcast_object(comm, object_of(comm.rank(), root), {.root = root});
      require(got == object_of(root, root), "broadcast from " + std::to_string(root));
    }
  });
}

TEST_P(ObjectCollectives, Gather) {
  run_threads(GetParam(), [](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      const auto got = gather_object(comm, object_of(comm.rank(), 3), {.root = root});
      require(got.size() == (comm.rank() == root ? static_cast<std::size_t>(comm.size()) : 0),
              "only the root gets objects");
      for (std::size_t r = 0; r < got.size(); ++r) {
        require(got[r] == object_of(static_cast<int>(r), 3), "gather of " + std::to_string(r));
      }
    }
  });
}

TEST_P(ObjectCollectives, AllGather) {
  run_threads(GetParam(), [](Communicator& comm) {
    const auto got = all_gather_object(comm, object_of(comm.rank(), 5));
    require(got.size() == static_cast<std::size_t>(comm.size()), "an object a rank");
    for (int r = 0; r < comm.size(); ++r) {
      require(got[static_cast<std::size_t>(r)] == object_of(r, 5),
              "all_gather of " + std::to_string(r));
    }
  });
}

TEST_P(ObjectCollectives, WithoutWaiting) {
  run_threads(GetParam(), [](Communicator& comm) {
    const int last = comm.size() - 1;
    auto all = all_gather_object_async(comm, object_of(comm.rank(), 1));
    std::vector<int> sum{comm.rank()};
    Work between = comm.all_reduce_async(sum);
    auto sent = broadcast_object_async(comm, object_of(comm.rank(), 2), {.root = last});
    auto gathered = gather_object_async(comm, object_of(comm.rank(), 3), {.root = last});
    std::vector<Object> parts;
    for (int r = 0; comm.rank() == 0 && r < comm.size(); ++r) parts.push_back(object_of(r, 4));
    auto mine = scatter_object_async(comm, parts);
    require(mine.wait() == object_of(comm.rank(), 4), "scatter");
    const int count = comm.rank() == last ? comm.size() : 0;
    require(gathered.wait().size() == static_cast<std::size_t>(count), "gather");
    require(sent.wait() == object_of(last, 2), "broadcast");
    between.wait();
    require(sum[0] == last * (last + 1) / 2, "the call between");
    const std::vector<Object> everyone = all.wait();
    for (int r = 0; r < comm.size(); ++r) {
      require(everyone[static_cast<std::size_t>(r)] == object_of(r, 1), "all_gather");
    }
  });
}

TEST_P(ObjectCollectives, MessagesWithoutWaiting) {
  run_threads(GetParam(), [](Communicator& comm) {
    const int next = (comm.rank() + 1) % comm.size();
    const int before = (comm.rank() + comm.size() - 1) % comm.size();
    auto first = recv_object_async(comm, before);
    auto second = recv_object_async(comm, before);
    Work one = send_object_async(comm, object_of(comm.rank() + 9, 1), next);  // long
    Work two = send_object_async(comm, comm.rank(), next);
    const ReceivedObject came = second.wait();
    require(came.object.as_integer() == before && came.from.source == before, "the short one");
    require(first.wait().object == object_of(before + 9, 1), "the long one");
    one.wait();
    two.wait();
  });
}

TEST_P(ObjectCollectives, FromRankToRank) {
  run_threads(GetParam(), [](Communicator& comm) {
    const int next = (comm.rank() + 1) % comm.size();
    if (next == comm.rank()) return;
    // None, one message, its largest and the least that are two, many.
    const std::vector<Object> objects{Object(),
                                      object_of(comm.rank(), 3),
                                      Object(std::string(200, 'a')),
                                      Object(std::string(300, 'b')),
                                      Object(std::string(3'000'000, 'c'))};
    for (const Object& object : objects) {
      if (comm.rank() == 0) send_object(comm, object, next, {.tag = 3});
      const ReceivedObject got = recv_object(comm, kAnySource, {.tag = 3});
      if (comm.rank() != 0) send_object(comm, object, next, {.tag = 3});
      const int before = (comm.rank() + comm.size() - 1) % comm.size();
      require(got.from.source == before && got.from.tag == 3, "who sent");
      require(got.object == (&object == &objects[1] ? object_of(before, 3) : object), "what");
    }
  });
}

TEST_P(ObjectCollectives, AnArrayIsNoObject) {
  run_threads(GetParam(), [](Communicator& comm) {
    if (comm.rank() == 0 && comm.size() > 1) {
      const std::vector<std::uint8_t> array(256, 7);
      comm.send(array, 1);
    }
    if (comm.rank() == 1) {
      EXPECT_THROW(recv_object(comm, 0), InvalidArgument);
    }
    comm.barrier();
  });
}

TEST_P(ObjectCollectives, Scatter) {
  run_threads(GetParam(), [](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      std::vector<Object> objects;
      if (comm.rank() == root) {
        for (int r = 0; r < comm.size(); ++r) objects.push_back(object_of(r, 7 + root));
      }
      const Object got = scatter_object(comm, objects, {.root = root});
      require(got == object_of(comm.rank(), 7 + root), "scatter from " + std::to_string(root));
    }
  });
}

// If one rank cannot provide its object, all ranks leave the call, and the communicator can still
// be used.
template <typename Call>
void refused_by_all(int size, Call call) {
  run_threads(size, [&call](Communicator& comm) {
    const int culprit = comm.size() - 1;
    try {
      call(comm, culprit);
      require(false, "nothing was refused");
    } catch (const InvalidArgument& error) {
      const std::string wanted =
          comm.rank() == culprit ? "nests deeper" : "rank " + std::to_string(culprit);
      require(std::string(error.what()).find(wanted) != std::string::npos, error.what());
    }
    const auto after = all_gather_object(comm, comm.rank());
    require(after.back() == Object(culprit), "the call after a refusal");
  });
}

Object from(const Communicator& comm, int culprit) {
  return comm.rank() == culprit ? too_deep() : Object(comm.rank());
}

TEST_P(ObjectCollectives, RefusalStrandsNobody) {
  refused_by_all(GetParam(), [](Communicator& comm, int culprit) {
    broadcast_object(comm, from(comm, culprit), {.root = culprit});
  });
  refused_by_all(GetParam(), [](Communicator& comm, int culprit) {
    gather_object(comm, from(comm, culprit), {.root = 0});
  });
  refused_by_all(GetParam(), [](Communicator& comm, int culprit) {
    static_cast<void>(all_gather_object(comm, from(comm, culprit)));
  });
  refused_by_all(GetParam(), [](Communicator& comm, int culprit) {
    std::vector<Object> objects(static_cast<std::size_t>(comm.size()), from(comm, culprit));
    scatter_object(comm, objects, {.root = culprit});
  });
}

TEST_P(ObjectCollectives, ScatterWantsAnObjectForEachRank) {
  run_threads(GetParam(), [](Communicator& comm) {
    const std::vector<Object> too_many(static_cast<std::size_t>(comm.size()) + 1, Object(1));
    try {
      scatter_object(comm, too_many, {.root = 0});
      require(false, "one object too many was taken");
    } catch (const InvalidArgument&) {
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ObjectCollectives, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace hocket
