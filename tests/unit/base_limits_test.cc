// Limits of time that are none are refused, wherever a program gives one, and end nothing.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hocket/hocket.h"

namespace hocket {
namespace {

using std::chrono::seconds;
using Use = std::function<void(Communicator&, Duration)>;

struct Row {
  std::string name;
  Use use;
};

std::vector<float> x(4, 1.0F), y(4);
std::vector<std::int32_t> who(4);

// Each takes a deadline.
const std::vector<Row> kCalls{
    {"set_deadline", [](Communicator& c, Duration d) { c.set_deadline(d); }},
    {"all_reduce", [](Communicator& c, Duration d) { c.all_reduce(x, {.deadline = d}); }},
    {"all_reduce_async",
     [](Communicator& c, Duration d) { c.all_reduce_async(x, y, {.deadline = d}).wait(); }},
    {"prepare_all_reduce",
     [](Communicator& c, Duration d) { c.prepare_all_reduce(x, y, {.deadline = d})(); }},
    {"reduce", [](Communicator& c, Duration d) { c.reduce(x, {.deadline = d}); }},
    {"scan", [](Communicator& c, Duration d) { c.scan(x, {.deadline = d}); }},
    {"exscan", [](Communicator& c, Duration d) { c.exscan(x, {.deadline = d}); }},
    {"reduce_scatter", [](Communicator& c, Duration d) { c.reduce_scatter(x, {.deadline = d}); }},
    {"broadcast", [](Communicator& c, Duration d) { c.broadcast(x, {.deadline = d}); }},
    {"all_gather", [](Communicator& c, Duration d) { c.all_gather(x, {.deadline = d}); }},
    {"gather", [](Communicator& c, Duration d) { c.gather(x, {.deadline = d}); }},
    {"scatter", [](Communicator& c, Duration d) { c.scatter(x, {.deadline = d}); }},
    {"all_to_all", [](Communicator& c, Duration d) { c.all_to_all(x, {.deadline = d}); }},
    {"all_gather_v",
     [](Communicator& c, Duration d) { c.all_gather_v(x, y, {}, {.deadline = d}); }},
    {"all_to_all_v_async",
     [](Communicator& c, Duration d) {
       const std::vector<std::size_t> counts{4};
       c.all_to_all_v_async(x, {counts}, y, {counts}, {.deadline = d}).wait();
     }},
    {"reproducible_sum",
     [](Communicator& c, Duration d) { c.reproducible_sum(x, y, {.deadline = d}); }},
    {"all_reduce_coalesced",
     [](Communicator& c, Duration d) {
       const std::vector<ArrayView> both{x, y};
       c.all_reduce_coalesced(both, {.deadline = d});
     }},
    {"barrier", [](Communicator& c, Duration d) { c.barrier({.deadline = d}); }},
    {"barrier_async", [](Communicator& c, Duration d) { c.barrier_async({.deadline = d}).wait(); }},
    {"send", [](Communicator& c, Duration d) { c.send(x, 0, {.deadline = d}); }},
    {"send_async", [](Communicator& c, Duration d) { c.send_async(x, 0, {.deadline = d}).wait(); }},
    {"recv", [](Communicator& c, Duration d) { c.recv(x, 0, {.deadline = d}); }},
    {"recv_async", [](Communicator& c, Duration d) { c.recv_async(x, 0, {.deadline = d}).wait(); }},
    {"probe", [](Communicator& c, Duration d) { c.probe(0, {.deadline = d}); }},
    {"send_recv", [](Communicator& c, Duration d) { c.send_recv(x, y, 0, {.deadline = d}); }},
    {"exchange", [](Communicator& c, Duration d) { c.exchange({}, {}, {.deadline = d}); }},
    {"split", [](Communicator& c, Duration d) { static_cast<void>(c.split({}, {.deadline = d})); }},
    {"duplicate",
     [](Communicator& c, Duration d) { static_cast<void>(c.duplicate({.deadline = d})); }},
    {"rebuild", [](Communicator& c, Duration d) { static_cast<void>(c.rebuild({.deadline = d})); }},
    {"by an operator",
     [](Communicator& c, Duration d) {
       all_reduce(c, x, y, operator_of<float>(std::plus<>{}), {.deadline = d});
     }},
    {"argmin",
     [](Communicator& c, Duration d) {
       argmin(c, x, {.values = y, .ranks = who}, {.deadline = d});
     }},
    {"broadcast_object",
     [](Communicator& c, Duration d) { broadcast_object(c, Object(1), {.deadline = d}); }},
    {"send_object",
     [](Communicator& c, Duration d) { send_object(c, Object(1), 0, {.deadline = d}); }},
    {"symmetric",
     [](Communicator& c, Duration d) {
       static_cast<void>(
           c.symmetric().empty<float>(4, {.memory = MemoryKind::kHost, .deadline = d}));
     }},
    {"run_threads",
     [](Communicator&, Duration d) { run_threads(1, [](Communicator&) {}, {.deadline = d}); }},
    {"DevicePool", [](Communicator&, Duration d) { DevicePool pool(1, {.deadline = d}); }},
};

std::string refusal_of(const std::function<void()>& use) {
  try {
    use();
  } catch (const InvalidArgument& refusal) {
    return refusal.what();
  } catch (const std::exception& other) {
    return std::string("another error: ") + other.what();
  }
  return "not refused";
}

TEST(Limits, ADeadlineIsMoreThanZero) {
  run_threads(1, [](Communicator& comm) {
    for (const Row& row : kCalls) {
      for (const auto& [limit, said] :
           {std::pair{Duration(seconds(-1)), "-1 s"}, {Duration::zero(), "0 s"}}) {
        EXPECT_NE(refusal_of([&] {
                    row.use(comm, limit);
                  }).find(std::string("deadline is ") + said + ", expected more than 0 s"),
                  std::string::npos)
            << row.name << ": " << refusal_of([&] { row.use(comm, limit); });
      }
    }
    // Nothing has ended.
    x.assign(4, 1.0F);
    comm.all_reduce(x, {.deadline = seconds(30)});
    EXPECT_EQ(x, std::vector<float>(4, 1.0F));
  });
}

// The others hear at once of a call that one rank refuses, and all can go on.
TEST(Limits, OneRanksIsRefusedOnAll) {
  run_threads(3, [](Communicator& comm) {
    std::vector<float> mine(8, 1.0F);
    const Duration limit = comm.rank() == 1 ? Duration(seconds(-1)) : Duration(seconds(60));
    const std::string said = refusal_of([&] { comm.all_reduce(mine, {.deadline = limit}); });
    if (said.find("deadline is -1 s") == std::string::npos) throw std::runtime_error(said);
    comm.all_reduce(mine);
    if (mine != std::vector<float>(8, 3.0F)) throw std::runtime_error("a wrong sum");
    const std::string rebuilt =
        refusal_of([&] { static_cast<void>(comm.rebuild({.deadline = limit})); });
    if (rebuilt.find("deadline is -1 s") == std::string::npos) throw std::runtime_error(rebuilt);
  });
}

TEST(Limits, AWaitIsZeroOrMore) {
  run_threads(1, [](Communicator& comm) {
    std::vector<float> in(4);
    Work work = comm.recv_async(in, 0);
    EXPECT_FALSE(work.wait_for(Duration::zero()));
    EXPECT_EQ(refusal_of([&] { static_cast<void>(work.wait_for(seconds(-1))); }),
              "timeout is -1 s, expected 0 s or more");
    comm.send(std::vector<float>(4, 2.0F), 0);
    EXPECT_TRUE(work.wait_for(seconds(30)));
    EXPECT_EQ(in, std::vector<float>(4, 2.0F));
  });
}

TEST(Limits, JoiningTakesTime) {
  for (const Duration limit : {Duration(seconds(-1)), Duration::zero()}) {
    EXPECT_NE(refusal_of([&] { init({.timeout = limit}).close(); }).find("timeout is "),
              std::string::npos);
    EXPECT_NE(refusal_of([&] { init({.deadline = limit}).close(); }).find("deadline is "),
              std::string::npos);
  }
}

}  // namespace
}  // namespace hocket
