// The launch parameters that follow from options and environment, and joining by them.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hocket/error.h"
#include "hocket/launch.h"
#include "membership/rendezvous/join.h"
#include "membership/rendezvous/launchers/launchers.h"
#include "rendezvous_stores.h"

namespace hocket {
namespace {

using testing::in_threads;
using testing::kPatience;
using testing::message_of;

// The variables of every launcher: unset but for those given, and as before at its end.
class Environment {
 public:
  explicit Environment(std::initializer_list<std::pair<const char*, std::string>> values) {
    for (const char* name : {"HOCKET_RANK",
                             "HOCKET_SIZE",
                             "HOCKET_LOCAL_RANK",
                             "HOCKET_LOCAL_SIZE",
                             "HOCKET_STORE",
                             "HOCKET_JOB",
                             "HOCKET_KEY_FD",
                             "HOCKET_KEY_FILE",
                             "HOCKET_TRUST_NETWORK",
                             "RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "TORCHELASTIC_RUN_ID",
                             "TORCHELASTIC_RESTART_COUNT",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "PMIX_NAMESPACE",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "PMI_FD",
                             "MPI_LOCALRANKID",
                             "MPI_LOCALNRANKS",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_LOCALID",
                             "SLURM_NODEID",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "SLURM_STEP_TASKS_PER_NODE",
                             "SLURM_TASKS_PER_NODE",
                             "SLURM_RESTART_COUNT"}) {
      if (const char* value = ::getenv(name))
        before_[name] = value;
      else
        before_.emplace(name, std::nullopt);
      ::unsetenv(name);
    }
    for (const auto& [name, value] : values) {
      EXPECT_TRUE(before_.contains(name)) << name;
      ::setenv(name, value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
    }
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

std::string refusal(const InitOptions& options = {}) {
  try {
    detect_launch(options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no InvalidArgument";
}

void expect_says(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
}

std::string on_unix(const std::string& what) {
  return "unix:hocket-" + std::to_string(::geteuid()) + "-" + what;
}

TEST(LaunchTest, NothingAtAllIsAJobOfOne) {
  const Environment environment({});
  const LaunchInfo launch = detect_launch();
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.size, 1);
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_EQ(launch.local_size, 1);
  EXPECT_EQ(launch.launcher, "single process");
  EXPECT_EQ(launch.store_address, "");
}

TEST(LaunchTest, HocketRun) {
  const Key key = Key::generate();
  const os::Fd fd(key.to_fd());
  const Environment environment({{"HOCKET_RANK", "2"},
                                 {"HOCKET_SIZE", "8"},
                                 {"HOCKET_LOCAL_RANK", "1"},
                                 {"HOCKET_LOCAL_SIZE", "4"},
                                 {"HOCKET_STORE", "127.0.0.1:4711"},
                                 {"HOCKET_JOB", "job 5"},
                                 {"HOCKET_KEY_FD", std::to_string(fd.get())},
                                 {"RANK", "7"}});
  const LaunchInfo launch = detect_launch();
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_size, 4);
  EXPECT_EQ(launch.launcher, "hocket run");
  EXPECT_EQ(launch.store_address, "127.0.0.1:4711");
  EXPECT_EQ(launch.job, "job 5");
  EXPECT_TRUE(launch.key == key);
  EXPECT_FALSE(launch.rank_zero_serves);
}

TEST(LaunchTest, Torchrun) {
  const Environment environment({{"RANK", "1"},
                                 {"WORLD_SIZE", "3"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "3"},
                                 {"MASTER_ADDR", "some-host"},
                                 {"MASTER_PORT", "29500"},
                                 {"TORCHELASTIC_RUN_ID", "run"},
                                 {"TORCHELASTIC_RESTART_COUNT", "2"}});
  const LaunchInfo launch = detect_launch();
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 3);
  EXPECT_EQ(launch.local_size, 3);
  EXPECT_EQ(launch.launcher, "torchrun");
  EXPECT_EQ(launch.store_address, on_unix("29500"));
  EXPECT_EQ(launch.job, "run");
  EXPECT_EQ(launch.epoch, 2);
  EXPECT_TRUE(launch.rank_zero_serves);
}

TEST(LaunchTest, TorchrunOnManyHostsNeedsAnAddressAndAKey) {
  Key::generate();
  const Environment environment({{"RANK", "1"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "4"},
                                 {"MASTER_ADDR", "some-host"},
                                 {"MASTER_PORT", "29500"}});
  expect_says(refusal(), {"torchrun", "only 4 of its 8 ranks", "HOCKET_STORE", "HOCKET_KEY_FILE"});
  ::setenv("HOCKET_STORE", "some-host:29501", 1);
  const LaunchInfo launch = detect_launch();
  EXPECT_EQ(launch.store_address, "some-host:29501");
  EXPECT_TRUE(launch.rank_zero_serves);
  expect_says(message_of([&] { rendezvous::join(launch, kPatience); }), {"hocket key FILE"});
}

// The variables that Kubernetes' operators set. They do not tell the ranks' hosts, and MASTER_ADDR
// is rank 0's own name.
TEST(LaunchTest, KubernetesWithAKeyMeetsAtTheMaster) {
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  const Key key = Key::generate();
  for (const std::string& host : {std::string("train-0.train"), std::string(name)}) {
    const Environment environment(
        {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", host}, {"MASTER_PORT", "29500"}});
    const LaunchInfo launch = detect_launch({.key = key});
    EXPECT_EQ(launch.store_address, host + ":29501");
    EXPECT_TRUE(launch.rank_zero_serves);
  }
  const Environment local(
      {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(detect_launch({.key = key}).store_address, on_unix("29500"));
}

TEST(LaunchTest, OpenMpi) {
  const Environment environment({{"OMPI_COMM_WORLD_RANK", "3"},
                                 {"OMPI_COMM_WORLD_SIZE", "4"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                 {"PMIX_NAMESPACE", "12345.1"}});
  const LaunchInfo launch = detect_launch();
  EXPECT_EQ(launch.launcher, "Open MPI");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.store_address, on_unix("ompi-12345.1"));
  ::setenv("PMIX_NAMESPACE", std::string(200, 'n').c_str(), 1);
  EXPECT_LT(detect_launch().store_address.size(), 100U);
}

TEST(LaunchTest, Mpich) {
  const Environment environment(
      {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}});
  const LaunchInfo launch = detect_launch();
  EXPECT_EQ(launch.launcher, "MPICH");
  EXPECT_EQ(launch.size, 2);
  EXPECT_EQ(launch.store_address, on_unix("pmi-" + std::to_string(::getppid())));
}

TEST(LaunchTest, Slurm) {
  const Environment environment({{"SLURM_PROCID", "3"},
                                 {"SLURM_NTASKS", "64"},
                                 {"SLURM_STEP_NUM_TASKS", "4"},
                                 {"SLURM_LOCALID", "3"},
                                 {"SLURM_NODEID", "0"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "4"},
                                 {"SLURM_JOB_ID", "77"},
                                 {"SLURM_STEP_ID", "1"}});
  const LaunchInfo launch = detect_launch();
  EXPECT_EQ(launch.launcher, "Slurm");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.local_size, 4);
  EXPECT_EQ(launch.store_address, on_unix("slurm-77.1"));
  // A batch script outside of any step is one process.
  ::unsetenv("SLURM_STEP_ID");
  EXPECT_EQ(detect_launch().size, 1);
}

TEST(LaunchTest, SlurmTasksOnNode) {
  using rendezvous::slurm_tasks_on_node;
  EXPECT_EQ(slurm_tasks_on_node("4", 0), 4);
  EXPECT_EQ(slurm_tasks_on_node("4(x2),3", 1), 4);
  EXPECT_EQ(slurm_tasks_on_node("4(x2),3", 2), 3);
  EXPECT_EQ(slurm_tasks_on_node("4(x2),3", 3), std::nullopt);
  EXPECT_EQ(slurm_tasks_on_node("1,2(x3),9", 4), 9);
  for (const char* bad : {"", "x", "4(x", "4(x2", "(x2)", "4(xx)", "0"}) {
    EXPECT_EQ(slurm_tasks_on_node(bad, 0), std::nullopt) << bad;
  }
}

TEST(LaunchTest, OptionsWinOverTheEnvironment) {
  const Environment environment({{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_PORT", "29500"}});
  const Key key = Key::generate();
  const LaunchInfo launch =
      detect_launch({.rank = 4, .size = 5, .address = "10.0.0.1:7", .key = key});
  EXPECT_EQ(launch.rank, 4);
  EXPECT_EQ(launch.size, 5);
  EXPECT_EQ(launch.launcher, "explicit");
  EXPECT_EQ(launch.store_address, "10.0.0.1:7");
  EXPECT_TRUE(launch.key == key);
  EXPECT_TRUE(launch.rank_zero_serves);
  // On loopback: by the key, or else by the user.
  EXPECT_EQ(
      detect_launch({.rank = 4, .size = 5, .address = "localhost:7", .key = key}).store_address,
      "localhost:7");
  EXPECT_EQ(detect_launch({.rank = 4, .size = 5, .address = "localhost:7"}).store_address,
            on_unix("7"));
  EXPECT_EQ(detect_launch({.rank = 4, .size = 5, .address = "unix:place"}).store_address,
            "unix:place");
}

TEST(LaunchTest, HalfSetAndContradictingVariablesAreNamed) {
  {
    const Environment environment({{"HOCKET_RANK", "1"}});
    expect_says(refusal(), {"HOCKET_RANK is set and HOCKET_SIZE is not"});
  }
  {
    const Environment environment({{"WORLD_SIZE", "2"}});
    expect_says(refusal(), {"WORLD_SIZE is set and RANK is not"});
  }
  {
    const Environment environment({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
    expect_says(refusal(), {"RANK=2", "WORLD_SIZE=2", "contradict"});
    ::setenv("RANK", "one", 1);
    expect_says(refusal(), {"RANK=one"});
    ::setenv("RANK", "1", 1);
    expect_says(refusal(), {"WORLD_SIZE=2", "HOCKET_STORE"});
    ::setenv("LOCAL_RANK", "3", 1);
    ::setenv("LOCAL_WORLD_SIZE", "3", 1);
    expect_says(refusal(), {"LOCAL_RANK=3", "LOCAL_WORLD_SIZE=3"});
  }
  {
    const Environment environment({{"HOCKET_RANK", "0"},
                                   {"HOCKET_SIZE", "3"},
                                   {"HOCKET_LOCAL_RANK", "0"},
                                   {"HOCKET_LOCAL_SIZE", "4"}});
    expect_says(refusal(), {"HOCKET_LOCAL_SIZE=4 must be at most HOCKET_SIZE=3", "contradict"});
  }
  {
    const Environment environment({{"HOCKET_RANK", "0"}, {"HOCKET_SIZE", "2"}});
    ::setenv("HOCKET_STORE", "nowhere", 1);
    expect_says(refusal(), {"HOCKET_STORE", "nowhere"});
    ::setenv("HOCKET_STORE", "127.0.0.1:0", 1);
    expect_says(refusal(), {"HOCKET_STORE", "port 0"});
    ::setenv("HOCKET_TRUST_NETWORK", "yes", 1);
    expect_says(refusal(), {"HOCKET_TRUST_NETWORK=yes"});
  }
  const Environment environment({});
  expect_says(refusal({.rank = 1}), {"a rank and no size"});
  expect_says(refusal({.rank = 2, .size = 2}), {"rank 2 of 2"});
  constexpr int kMost = std::numeric_limits<int>::max();
  expect_says(refusal({.rank = 0, .size = kMost}),
              {"rank 0 of 2147483647", "at most 1048576 ranks"});
  expect_says(refusal({.rank = 1, .size = 2}), {"address"});
}

// --- Keys -----------------------------------------------------------------------------------

class KeyFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/hocket-key-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/key";
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }

  std::string folder_;
  std::string path_;
};

TEST_F(KeyFileTest, IsWrittenOnceAndRead) {
  const Key key = Key::generate();
  EXPECT_FALSE(key == Key::generate());
  key.write_file(path_);
  EXPECT_TRUE(Key::from_file(path_) == key);
  EXPECT_THROW(key.write_file(path_), SystemError);
}

TEST_F(KeyFileTest, MustBePrivateAndWhole) {
  Key::generate().write_file(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  expect_says(message_of([&] { Key::from_file(path_); }), {"chmod 600", "0640"});
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  ASSERT_EQ(::truncate(path_.c_str(), 60), 0);
  expect_says(message_of([&] { Key::from_file(path_); }), {"64 hexadecimal digits"});
  expect_says(message_of([&] { Key::from_file(folder_ + "/none"); }),
              {"hocket key FILE makes one"});
  expect_says(message_of([&] { Key::from_file(folder_); }), {"not a regular file"});
}

TEST_F(KeyFileTest, AKeyInAPathsPlaceIsNotSpokenOut) {
  const std::string key(64, 'a');
  const std::string said = message_of([&] { Key::from_file(key); });
  expect_says(said, {"a key itself", "key file"});
  EXPECT_EQ(said.find(key), std::string::npos) << said;
}

// The kernel's flags of the mapping that contains `address`: "rd wr mr mw me ac dd ".
std::string flags_of_mapping(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0;
    unsigned long last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) {
      const auto at = reinterpret_cast<unsigned long>(address);
      inside = at >= first && at < last;
    }
    if (inside && line.starts_with("VmFlags:")) return line.substr(8) + " ";
  }
  return "";
}

TEST(KeyTest, LiesWhereNoCoreDumpHasIt) {
  const Key key = Key::generate();
  const std::string flags = flags_of_mapping(key.bytes().data());
  if (flags.empty()) GTEST_SKIP() << "this kernel shows no flags of mappings";
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  const Key copy = key;
  EXPECT_EQ(copy.bytes().data(), key.bytes().data());  // there is one
  const Key other(key.bytes());
  EXPECT_TRUE(other == key);
  EXPECT_NE(flags_of_mapping(other.bytes().data()).find(" dd "), std::string::npos);
  EXPECT_TRUE(Key() == Key());
  EXPECT_FALSE(Key() == key);
}

TEST(KeyFdTest, IsReadAgainAndAgain) {
  const Key key = Key::generate();
  const os::Fd fd(key.to_fd());
  EXPECT_TRUE(Key::from_fd(fd.get()) == key);
  EXPECT_TRUE(Key::from_fd(fd.get()) == key);
  expect_says(message_of([] { Key::from_fd(0); }), {"descriptor 0", "sealed memfd"});
  expect_says(message_of([] { Key::from_fd(987654); }), {"HOCKET_KEY_FILE"});
}

// --- Joining --------------------------------------------------------------------------------

void expect_all_join(const LaunchInfo& job) {
  std::vector<std::shared_ptr<Store>> stores(static_cast<std::size_t>(job.size));
  in_threads(job.size, [&](int rank) {
    LaunchInfo launch = job;
    launch.rank = rank;
    auto store = rendezvous::join(launch, kPatience).store;
    const auto all =
        store->exchange("hosts", rank, job.size, as_bytes(std::to_string(rank * 3)), kPatience);
    for (int r = 0; r < job.size; ++r) {
      EXPECT_EQ(to_string(all.at(static_cast<std::size_t>(r))), std::to_string(r * 3));
    }
    store->close();
  });
}

TEST(JoinTest, AJobOfOneNeedsNobody) {
  const auto store = rendezvous::join({}, testing::kShort).store;
  store->barrier("b", 1, 0, testing::kShort);
  EXPECT_EQ(to_string(store->exchange("x", 0, 1, as_bytes("me"), testing::kShort).at(0)), "me");
}

TEST(JoinTest, RankZeroServesByUser) {
  expect_all_join({.size = 5,
                   .store_address = testing::unique_unix_address(),
                   .job = "j",
                   .rank_zero_serves = true});
}

TEST(JoinTest, RankZeroServesByKey) {
  // A port that is free, or was a moment ago.
  const int port = StoreServer({.trust_network = true}).port();
  expect_all_join({.size = 3,
                   .store_address = "127.0.0.1:" + std::to_string(port),
                   .key = Key::generate(),
                   .rank_zero_serves = true});
}

TEST(JoinTest, RankZeroServesByTls) {
  const auto address = testing::outside_address();
  if (!address) GTEST_SKIP() << "this machine has no address but loopback";
  const int port = StoreServer({.address = *address, .trust_network = true}).port();
  expect_all_join({.size = 3,
                   .store_address = *address + ":" + std::to_string(port),
                   .key = Key::generate(),
                   .rank_zero_serves = true});
}

TEST(JoinTest, AServerThatIsThereIsUsed) {
  const Key key = Key::generate();
  const StoreServer server({.key = key, .job = "j", .size = 3});
  expect_all_join({.size = 3,
                   .store_address = server.address(),
                   .job = "j",
                   .key = key,
                   .rank_zero_serves = true});
}

TEST(JoinTest, WaitsForAnEarlierEpochToLeave) {
  LaunchInfo launch{.size = 2,
                    .store_address = testing::unique_unix_address(),
                    .epoch = 1,
                    .rank_zero_serves = true};
  auto earlier = std::make_unique<StoreServer>(
      StoreServer::Options{.address = launch.store_address, .epoch = 0, .size = 2});
  std::thread leaving([&earlier] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    earlier.reset();
  });
  expect_all_join(launch);
  leaving.join();
}

}  // namespace
}  // namespace hocket
