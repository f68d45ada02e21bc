// A moved-from object reports its misuse, instead of reading invalid memory.
#include <gtest/gtest.h>

#include <complex>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hocket/hocket.h"

namespace hocket {
namespace {

std::string refusal_of(const std::function<void()>& use) {
  try {
    use();
  } catch (const InvalidArgument& refusal) {
    return refusal.what();
  }
  return "not refused";
}

void expect_refused(const std::string& name, const std::vector<std::function<void()>>& uses) {
  for (std::size_t i = 0; i < uses.size(); ++i) {
    EXPECT_EQ(
        refusal_of(uses[i]),
        "this " + name + " was moved from and holds nothing any more; use what it was moved to")
        << "use " << i;
  }
}

class MovedFrom : public testing::Test {
 protected:
  World world = init();
  std::vector<float> x = std::vector<float>(4, 1.0F);
};

TEST_F(MovedFrom, ACommunicatorIsRefused) {
  Communicator comm = world.communicator().duplicate();
  const Communicator other = std::move(comm);
  expect_refused("Communicator",
                 {[&] { comm.rank(); },
                  [&] { comm.name(); },
                  [&] { comm.all_reduce(x); },
                  [&] { static_cast<void>(comm.all_reduce_async(x)); },
                  [&] { static_cast<void>(comm.prepare_all_reduce(x)); },
                  [&] { comm.send(x, 0); },
                  [&] { comm.barrier(); },
                  [&] { static_cast<void>(comm.duplicate()); },
                  [&] { comm.reproducible_sum(x, x); },
                  [&] { broadcast_object(comm, Object(1)); },
                  [&] { comm.set_deadline(kForever); },
                  [&] { comm.abort("enough"); },
                  [&] { comm.close(); }});
  EXPECT_EQ(other.rank(), 0);
}

TEST_F(MovedFrom, APreparedCallIsRefused) {
  Prepared prepared = world.communicator().prepare_all_reduce(x);
  Prepared other = std::move(prepared);
  expect_refused("Prepared", {[&] { prepared(); }, [&] { static_cast<void>(prepared.start()); }});
  other();
}

TEST_F(MovedFrom, AWorldIsRefused) {
  World other = std::move(world);
  expect_refused("World",
                 {[&] { world.rank(); },
                  [&] { world.communicator(); },
                  [&] { world.intra_node(); },
                  [&] { world.launch(); },
                  [&] { world.engines(); },
                  [&] { world.rebuild(); },
                  [&] { world.close(); }});
  world = std::move(other);
}

TEST_F(MovedFrom, PlansAreRefused) {
  Communicator& comm = world.communicator();
  Redistribution plan(comm, {{0}, {4}}, {{0}, {4}});
  const Redistribution other = std::move(plan);
  expect_refused("Redistribution", {[&] { plan.whole(); }, [&] { plan(x, x); }});
}

// --- What was moved elsewhere goes on -----------------------------------------------------------

TEST_F(MovedFrom, AWorldEndsWellWithoutItsCommunicator) {
  {
    World one = std::move(world);
    Communicator own = std::move(one.communicator());
    own.all_reduce(x);
    EXPECT_EQ(x, std::vector<float>(4, 1.0F));
  }
  run_threads(2, [](Communicator& comm) {
    std::vector<float> y(3, 1.0F);
    Communicator own = std::move(comm);
    own.all_reduce(y);
    EXPECT_EQ(y, std::vector<float>(3, 2.0F));
  });
  try {
    run_threads(2, [](Communicator& comm) {
      Communicator own = std::move(comm);
      if (own.rank() == 0) throw std::runtime_error("enough");
      own.barrier();
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "enough");
  }
}

TEST_F(MovedFrom, APlanGoesOnWhereItsCommunicatorIsMoved) {
  auto comm = std::make_unique<Communicator>(world.communicator().duplicate());
  Redistribution plan(*comm, {{0}, {4}}, {{0}, {4}});
  Fft transform(*comm, {4}, {{0}, {4}}, {{0}, {4}});
  const Communicator elsewhere = std::move(*comm);
  comm.reset();
  std::vector<float> out(4);
  plan(x, out);
  EXPECT_EQ(out, x);
  std::vector<std::complex<double>> in(4, 1.0);
  std::vector<std::complex<double>> spectrum(4);
  transform(in, spectrum);
  EXPECT_EQ(spectrum[0], std::complex<double>(4));
}

TEST_F(MovedFrom, AReferenceToAWorldsCommunicatorIsToTheRebuiltOne) {
  Communicator& comm = world.communicator();
  const int epoch = comm.epoch();
  EXPECT_EQ(&world.rebuild(), &comm);
  EXPECT_EQ(comm.epoch(), epoch + 1);
  comm.all_reduce(x);
}

TEST(MovedFromAlone, AnObjectLeavesNone) {
  const std::vector<double> numbers(6);
  Object array = Object::array(numbers);
  const Object other = std::move(array);
  EXPECT_TRUE(array.is_none());
  EXPECT_EQ(decode(encode(array)), Object());
  EXPECT_EQ(other.as_array().data.size(), 48U);
}

TEST(MovedFromAlone, AnObjectBecomesAPartOfItself) {
  Object settings{{"config", Object{{"step", 7}}}};
  settings = settings["config"];
  EXPECT_EQ(settings, (Object{{"step", 7}}));
  Object list = Object::list({Object::list({1, 2}), 3});
  list = list.items()[0];
  EXPECT_EQ(list, Object::list({1, 2}));
}

TEST(MovedFromAlone, AStoreServerIsRefused) {
  StoreServer server({.key = Key::generate()});
  const StoreServer other = std::move(server);
  expect_refused("StoreServer",
                 {[&] { server.port(); }, [&] { server.address(); }, [&] { server.clients(); }});
  server.close();  // of nothing
}

TEST(MovedFromAlone, ADevicePoolIsRefused) {
  DevicePool pool(2);
  const DevicePool other = std::move(pool);
  expect_refused(
      "DevicePool",
      {[&] { pool.size(); }, [&] { pool.map([](PoolWorker&) {}); }, [&] { pool.is_closed(); }});
}

}  // namespace
}  // namespace hocket
