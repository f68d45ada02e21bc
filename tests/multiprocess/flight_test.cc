// Flight records: written by each rank whose communicator fails, and whenever somebody asks.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "ranks.h"

namespace hocket::multiprocess {
namespace {

namespace fs = std::filesystem;

// A resource: a folder that is gone afterwards.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "hocket-flight-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }
  std::string text(const std::string& name) const {
    std::ifstream file(path_ / name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

void expect_in_order(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    const auto found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << "no \"" << part << "\" after " << at << " in:\n" << text;
    at = found + part.size();
  }
}

// Somebody who may write to the directory, as to /tmp, guesses the names that will be written.
TEST(Flight, FollowsNoLinkThatLiesInItsPlace) {
  const Folder folder;
  const Folder elsewhere;
  const fs::path precious = elsewhere.path() / "precious";
  std::ofstream(precious) << "precious";
  run_job({.size = 1}, [&](Rank& rank) {
    World world = rank.join();
    const fs::path made = world.communicator().dump(folder.path().string());
    fs::remove(made);
    fs::create_symlink(precious, made);
    for (const auto& number : {getpid(), gettid()}) {
      std::error_code there;
      fs::create_symlink(precious, made.string() + fmt::format(".{}.tmp", number), there);
    }
    world.communicator().dump(folder.path().string());
    rank.check(fs::is_regular_file(fs::symlink_status(made)), "the record is no file of its own");
  });
  std::string text;
  std::getline(std::ifstream(precious), text);
  EXPECT_EQ(text, "precious");
}

TEST(Flight, IsRecordedByAllSurvivorsOfADeath) {
  const Folder folder;
  const auto ranks = run_job(
      {.size = 3, .environment = {{"HOCKET_DUMP_DIR", (folder.path() / "made/for/it").string()}}},
      [](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        std::vector<float> x(static_cast<std::size_t>(5));
        for (int i = 0; i < 20; ++i) comm.all_reduce(x);
        comm.barrier();
        if (rank.rank() == 1) raise(SIGKILL);
        rank.attempt("call", [&] { comm.broadcast(x, {.root = 2}); });
        rank.attempt("later", [&] { comm.barrier(); });
      },
      {1});
  for (const int i : {0, 2}) {
    const Result& rank = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank.get("later"), "PeerDied");
    expect_in_order(folder.text(fmt::format("made/for/it/rank-{}.world.txt", i)),
                    {fmt::format("rank {} of the world (pid {}), communicator world", i, rank.pid),
                     " UTC\n",
                     fmt::format("rank 1 (pid {}) ", ranks[1].pid),
                     "this rank's last calls, oldest first\n",
                     "  all_reduce #20 sum float32[5]\n  barrier #21\n",
                     "what each rank was last seen in\n",
                     "rank 0: ",
                     "rank 1: barrier #21",
                     "rank 2: "});
  }
  EXPECT_FALSE(fs::exists(folder.path() / "made/for/it/rank-1.world.txt"));
}

TEST(Flight, IsRecordedAfterADeadlineForEachGroupOnce) {
  const Folder folder;
  run_job({.size = 2, .environment = {{"HOCKET_DUMP_DIR", folder.path().string()}}},
          [](Rank& rank) {
            World world = rank.join();
            auto group = world.communicator().duplicate();
            group.barrier();
            if (rank.rank() == 0) {
              const Outcome late =
                  outcome_of([&] { group.barrier({.deadline = std::chrono::milliseconds(50)}); });
              rank.check(late.kind == "DeadlineExceeded", late.kind + ": " + late.message);
              rank.mark(0);
            }
            rank.await(0, 1);
            const Outcome outcome = outcome_of([&] { group.barrier(); });
            rank.check(outcome.kind == "DeadlineExceeded", outcome.kind + ": " + outcome.message);
            world.communicator().barrier();  // which is not concerned
          });
  EXPECT_EQ(folder.files(), 2U);
  const auto any = fs::directory_iterator(folder.path())->path().filename().string();
  const auto group = any.substr(any.find('.'));
  for (const int i : {0, 1}) {
    expect_in_order(folder.text(fmt::format("rank-{}{}", i, group)),
                    {"barrier #2 on world/", "did not finish within", "rank 1", "barrier #1"});
  }
}

// Requested by another thread, on a waiting rank and on a rank that does not wait.
TEST(Flight, IsRecordedOnRequest) {
  const Folder folder;
  run_job({.size = 2}, [&](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    const Outcome nowhere = outcome_of([&] { comm.dump(); });
    rank.check(nowhere.kind == "InvalidArgument" &&
                   nowhere.message.find("HOCKET_DUMP_DIR") != std::string::npos,
               "dump without a directory: " + nowhere.kind + " " + nowhere.message);
    const Outcome no_folder = outcome_of([&] { comm.dump("/proc/no/such"); });
    rank.check(no_folder.kind == "Error", "dump to /proc: " + no_folder.kind);
    comm.barrier();
    if (rank.rank() == 0) {
      const std::string name = comm.dump(folder.path().string());
      rank.check(name == (folder.path() / "rank-0.world.txt").string(), "the name is " + name);
      rank.mark(0);
      comm.barrier();
      return;
    }
    std::thread asks([&] {
      rank.await(0, 1);
      while (comm.last_calls()[1].sequence < 2) std::this_thread::yield();
      comm.dump(folder.path().string());
    });
    comm.barrier();
    asks.join();
  });
  expect_in_order(
      folder.text("rank-0.world.txt"),
      {"rank 0 of the world", "no error so far\n", "  barrier #1\n", "rank 1: barrier #"});
  expect_in_order(folder.text("rank-1.world.txt"), {"rank 1 of the world", "  barrier #2\n"});
  EXPECT_EQ(folder.files(), 2U);
}

}  // namespace
}  // namespace hocket::multiprocess
