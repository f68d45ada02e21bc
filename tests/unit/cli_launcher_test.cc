// The launcher's parts that need no processes: who is blamed, who runs where, whole lines.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <set>
#include <string>

#include "hocket/error.h"
#include "interfaces/cli/fd.h"
#include "interfaces/cli/run/binding.h"
#include "interfaces/cli/run/environment_block.h"
#include "interfaces/cli/run/job_state.h"
#include "interfaces/cli/run/output.h"
#include "interfaces/cli/run/program.h"

namespace hocket::cli {
namespace {

// As waitpid encodes them.
int exited(int code) { return code << 8; }
int killed(int signal) { return signal; }

TEST(JobState, BlamesTheFirstFailureThatWasSeen) {
  JobState state(4);
  state.ended({.rank = 1, .pid = 11, .status = exited(0)});
  EXPECT_FALSE(state.has_failure());
  state.ended({.rank = 3, .pid = 13, .status = exited(7)});
  state.ended({.rank = 0, .pid = 10, .status = killed(SIGTERM)});  // ours
  EXPECT_EQ(state.culprit().rank, 3);
  EXPECT_EQ(state.culprit().exit_code(), 7);
  EXPECT_EQ(state.living(), 1);
}

TEST(JobState, BlamesASignalThatWasUnderWayRatherThanAnExit) {
  JobState state(4);
  state.ending(2);
  state.ending(3);
  state.ended({.rank = 0, .pid = 10, .status = exited(1)});
  EXPECT_TRUE(state.awaits_suspects());
  state.ended({.rank = 3, .pid = 13, .status = killed(SIGABRT)});
  state.ended({.rank = 2, .pid = 12, .status = killed(SIGSEGV)});
  EXPECT_FALSE(state.awaits_suspects());
  EXPECT_EQ(state.culprit().rank, 2);
  EXPECT_EQ(state.culprit().exit_code(), 128 + SIGSEGV);
}

TEST(JobState, ASuspectThatEndsWellIsInnocent) {
  JobState state(2);
  state.ending(1);
  state.ended({.rank = 0, .pid = 10, .status = exited(5)});
  state.ended({.rank = 1, .pid = 11, .status = exited(0)});
  EXPECT_EQ(state.culprit().rank, 0);
  EXPECT_EQ(state.failures(), 1);
}

TEST(JobState, BlamesWhoLeftTheJobFirstRatherThanWhoEndedFirst) {
  JobState state(4);
  for (const int rank : {2, 0}) state.said_goodbye(rank);
  for (const int rank : {2, 0, 3}) state.said_goodbye(rank);
  state.ended({.rank = 0, .pid = 10, .status = exited(1)});
  EXPECT_TRUE(state.awaits_suspects());  // rank 2, which left before
  state.ended({.rank = 3, .pid = 13, .status = exited(1)});
  state.ended({.rank = 2, .pid = 12, .status = exited(3)});
  EXPECT_FALSE(state.awaits_suspects());
  EXPECT_EQ(state.culprit().rank, 2);
  EXPECT_EQ(state.culprit().exit_code(), 3);
}

TEST(JobState, WhoLeftOnAnotherHostIsNotWaitedFor) {
  JobState state(2, 2);
  state.said_goodbye(0);
  state.ended({.rank = 3, .pid = 13, .status = exited(1)});
  EXPECT_FALSE(state.awaits_suspects());
  EXPECT_EQ(state.culprit().rank, 3);
}

TEST(RankEnd, SaysWhatHappened) {
  const RankEnd end{.rank = 2, .pid = 123, .status = killed(SIGSEGV)};
  EXPECT_NE(end.describe().find("rank 2 (pid 123) was killed by SIGSEGV"), std::string::npos);
  const RankEnd no_start{.rank = 1, .start_error = ENOENT};
  EXPECT_EQ(no_start.exit_code(), kExitNotFound);
  EXPECT_EQ((RankEnd{.rank = 1, .start_error = ENOEXEC}.exit_code()), kExitNotExecutable);
}

// `cores` cores of two threads each, numbered as on many machines: the second threads come last.
std::vector<Processor> machine(int cores) {
  std::vector<Processor> result;
  for (int core = 0; core < cores; ++core) {
    for (const int thread : {0, 1}) {
      result.push_back({.number = core + thread * cores, .package = 0, .core = core});
    }
  }
  return result;
}

std::set<int> numbers(const CpuMask& mask) {
  std::set<int> result;
  for (int number = 0; number < CpuMask::kMost; ++number) {
    if (mask.contains(number)) result.insert(number);
  }
  return result;
}

TEST(Binding, SharesAreDisjointCompleteAndOfWholeCores) {
  for (const int cores : {1, 2, 3, 4, 5, 6, 7, 8, 9, 600}) {
    const auto processors = machine(cores);
    EXPECT_EQ(count_cores(processors), cores);
    for (int ranks = 1; ranks <= 2 * cores; ranks += cores < 10 ? 1 : 97) {
      const auto shares = share_out(processors, ranks);
      ASSERT_EQ(shares.size(), static_cast<std::size_t>(ranks));
      std::set<int> all;
      for (const CpuMask& share : shares) {
        const std::set<int> mine = numbers(share);
        EXPECT_FALSE(mine.empty());
        for (const int number : mine) {
          EXPECT_TRUE(all.insert(number).second) << number << " was given twice";
          EXPECT_TRUE(ranks > cores || mine.contains((number + cores) % (2 * cores)));
        }
      }
      EXPECT_EQ(all.size(), processors.size());
    }
    EXPECT_TRUE(share_out(processors, 2 * cores + 1).empty());
  }
}

TEST(Binding, TheUsersOwnWishComesFirst) {
  EnvironmentBlock environment;
  const auto processors = machine(4);
  EXPECT_EQ(bind_ranks(Binding::kAuto, processors, 4, environment).size(), 4u);
  EXPECT_TRUE(bind_ranks(Binding::kNone, processors, 4, environment).empty());
  EXPECT_TRUE(bind_ranks(Binding::kAuto, processors, 9, environment).empty());
  EXPECT_THROW(bind_ranks(Binding::kCore, processors, 9, environment), InvalidArgument);
  environment.set("OMP_NUM_THREADS", "2");
  EXPECT_EQ(bind_ranks(Binding::kAuto, processors, 4, environment).size(), 4u);
  environment.set("OMP_NUM_THREADS", "3");
  EXPECT_TRUE(bind_ranks(Binding::kAuto, processors, 4, environment).empty());
  EXPECT_EQ(bind_ranks(Binding::kCore, processors, 4, environment).size(), 4u);
}

TEST(EnvironmentBlock, SetsGetsAndErases) {
  EnvironmentBlock block;
  block.set("A", "1");
  block.set("AB", "2=3");
  block.set("A", "4");
  EXPECT_EQ(block.get("A"), "4");
  EXPECT_EQ(block.get("AB"), "2=3");
  block.erase("A");
  EXPECT_FALSE(block.has("A"));
  const auto pointers = block.pointers();
  ASSERT_EQ(pointers.size(), 2u);
  EXPECT_STREQ(pointers[0], "AB=2=3");
  EXPECT_EQ(pointers[1], nullptr);
}

// Reads back the output of a sink.
class SinkTest : public ::testing::Test {
 protected:
  std::string written() {
    while (sink.wants_to_write()) sink.write_some();
    std::array<char, 4096> buffer{};
    const ssize_t length = ::read(pipe.read.get(), buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(length)};
  }
  Pipe pipe = make_pipe();
  Sink sink{pipe.write.get()};
};

TEST_F(SinkTest, LinesBeginWithTheirPrefix) {
  sink.put(1, "[0] ", "one\n");
  sink.put(2, "[1] ", "two\n");
  EXPECT_EQ(written(), "[0] one\n[1] two\n");
}

TEST_F(SinkTest, AnUnfinishedLineGoesOnOrIsEnded) {
  sink.put(1, "[0] ", "on");
  sink.put(1, "[0] ", "e\n");
  sink.put(1, "[0] ", "half");
  sink.put(2, "[1] ", "two\n");
  sink.put(1, "[0] ", "rest");
  sink.put_line("hocket: said");
  EXPECT_EQ(written(), "[0] one\n[0] half\n[1] two\n[0] rest\nhocket: said\n");
}

TEST_F(SinkTest, ProgressBarsKeepTheirPrefix) {
  for (const char* piece : {"\r", "10%\r", "20%\r", "\n"}) sink.put(1, "[0] ", piece);
  sink.put(1, "[0] ", "30%\r");
  sink.put(2, "[1] ", "two\n");
  EXPECT_EQ(written(), "\r[0] 10%\r[0] 20%\r\n[0] 30%\r\n[1] two\n");
}

TEST(Program, IsFoundAsAShellFindsIt) {
  std::array<char, 32> folder{"/tmp/hocket-test-XXXXXX"};
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = std::string(folder.data()) + "/tool";
  std::ofstream(path) << "#!/bin/sh\n";
  ::chmod(path.c_str(), 0644);
  EXPECT_EQ(find_program("tool", folder.data()).exit_code, kExitNotExecutable);
  ::chmod(path.c_str(), 0755);
  EXPECT_EQ(find_program("tool", std::string("/nowhere:") + folder.data()).path, path);
  EXPECT_EQ(find_program(path, "").path, path);
  EXPECT_EQ(find_program("tool", "/nowhere").exit_code, kExitNotFound);
  EXPECT_EQ(find_program(folder.data() + std::string("/"), "").exit_code, kExitNotExecutable);
  ::unlink(path.c_str());
  ::rmdir(folder.data());
}

}  // namespace
}  // namespace hocket::cli
