// Traces: written by ranks, read back, put on one clock, summed up; and files that are none.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hocket/error.h"
#include "hocket/trace.h"
#include "monitoring/observe/mapped_file.h"
#include "monitoring/observe/trace_file.h"

namespace hocket {
namespace {

using observe::Span;
using observe::TraceFile;
using observe::TraceHeader;
using observe::TraceRecord;
using observe::TraceState;

class Trace : public testing::Test {
 protected:
  Trace() {
    std::string pattern = testing::TempDir() + "hocket-trace-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~Trace() override { std::filesystem::remove_all(folder_); }

  std::vector<std::byte> contents(int rank) const {
    std::ifstream in(file(rank), std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
  }
  std::string file(int rank) const { return folder_ + "/rank-" + std::to_string(rank) + ".trace"; }

  // Writes the file of a rank on a host whose clock leads by `lead`.
  struct Made {
    std::uint64_t sequence;
    std::int64_t begin;
    std::int64_t end;  // -1: it did not
    bool failed = false;
  };
  void write(
      int rank, int size, int host, std::int64_t lead, const std::vector<Made>& calls) const {
    std::vector<char> bytes(observe::kTraceHeaderBytes + (calls.size() + 2) * sizeof(TraceRecord));
    const TraceHeader header{.magic = observe::kTraceMagic,
                             .version = observe::kTraceVersion,
                             .rank = rank,
                             .size = size,
                             .host = host,
                             .pid = 100 + rank,
                             .record_bytes = sizeof(TraceRecord),
                             .wall_ns = 5,
                             .dropped = 0,
                             .host_name = {"h"}};
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::vector<TraceRecord> records(calls.size() + 2);
    records[0] = {.state = static_cast<std::uint8_t>(TraceState::kGroup),
                  .sequence = 77,
                  .bytes = static_cast<std::uint64_t>(size),
                  .peer = rank};
    records[1] = {.state = static_cast<std::uint8_t>(TraceState::kName)};
    records[1].name = "world";
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Made& made = calls[i];
      TraceRecord& record = records[i + 2];
      const auto state = made.end < 0  ? TraceState::kBegun
                         : made.failed ? TraceState::kFailed
                                       : TraceState::kDone;
      record = {.state = static_cast<std::uint8_t>(state),
                .dtype = static_cast<std::uint8_t>(DType::kFloat32),
                .begin_ns = made.begin + lead,
                .end_ns = made.end < 0 ? 0 : made.end + lead,
                .sequence = made.sequence,
                .bytes = 4096,
                .peer = -1};
      record.name = "all_reduce";
      record.engine = "shm";
    }
    std::memcpy(bytes.data() + observe::kTraceHeaderBytes,
                records.data(),
                records.size() * sizeof(TraceRecord));
    std::ofstream(file(rank), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  std::string folder_;
};

TEST_F(Trace, WhatIsWrittenIsRead) {
  const std::string name(50, 'n');
  {
    const auto trace = TraceFile::make(folder_, {.rank = 1, .size = 3});
    ASSERT_EQ(trace->add_group(5, "world", 3, 1), 0u);
    ASSERT_EQ(trace->add_group(6, name, 2, 0), 1u);
    {
      const Span span(trace.get(), {.group = 0, .name = "barrier", .engine = "shm", .sequence = 1});
    }
    try {
      const Span span(trace.get(),
                      {.group = 1,
                       .name = "a_name_longer_than_its_place",
                       .engine = "shm",
                       .sequence = 9,
                       .dtype = DType::kFloat64,
                       .bytes = 800,
                       .peer = 2});
      throw std::runtime_error("it fails");
    } catch (const std::runtime_error&) {
    }
    Span open(trace.get(), {.group = 0, .name = "recv", .engine = "", .bytes = 4, .peer = -1});
    open.set_peer(2);
    Span moved = std::move(open);
    // The process ends, as it were: what is under way is in the file already.
    const RankTrace during = parse_rank_trace(contents(1));
    ASSERT_EQ(during.calls.size(), 3u);
    EXPECT_FALSE(during.calls[2].end);
    moved.end(false);
  }
  const JobTrace job = read_trace(folder_);
  ASSERT_EQ(job.ranks.size(), 1u);
  const RankTrace& rank = job.ranks[0];
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.size, 3);
  EXPECT_EQ(rank.pid, getpid());
  ASSERT_EQ(rank.groups.size(), 2u);
  EXPECT_EQ(rank.groups[1].name, name);
  EXPECT_EQ(rank.groups[1].id, 6u);
  EXPECT_EQ(rank.groups[1].size, 2);
  ASSERT_EQ(rank.calls.size(), 3u);
  EXPECT_EQ(rank.calls[0].begin, 0);
  EXPECT_EQ(rank.calls[0].name, "barrier");
  EXPECT_FALSE(rank.calls[0].failed);
  EXPECT_EQ(rank.calls[1].name, "a_name_longer_than_i");
  EXPECT_TRUE(rank.calls[1].failed);
  EXPECT_EQ(rank.calls[1].bytes, 800u);
  EXPECT_EQ(rank.calls[1].dtype, DType::kFloat64);
  EXPECT_EQ(rank.calls[2].peer, 2);
  ASSERT_TRUE(rank.calls[2].end);
  EXPECT_GE(*rank.calls[2].end, rank.calls[2].begin);
  EXPECT_GE(rank.calls[2].begin, *rank.calls[1].end);
}

TEST_F(Trace, ManyCallsFromManyPlacesAreAllThere) {
  constexpr int kCalls = 40000;  // more than one piece of the file
  {
    const auto trace = TraceFile::make(folder_, {.rank = 0, .size = 1});
    trace->add_group(5, "world", 1, 0);
    for (int i = 1; i <= kCalls; ++i) {
      const Span span(trace.get(), {.name = "barrier", .sequence = static_cast<std::uint64_t>(i)});
    }
  }
  const JobTrace job = read_trace(folder_);
  ASSERT_EQ(job.ranks[0].calls.size(), static_cast<std::size_t>(kCalls));
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_EQ(job.ranks[0].calls[static_cast<std::size_t>(i)].sequence,
              static_cast<std::uint64_t>(i + 1));
  }
  // The file holds exactly these records.
  EXPECT_EQ(std::filesystem::file_size(file(0)),
            observe::kTraceHeaderBytes + (kCalls + 2) * sizeof(TraceRecord));
}

TEST_F(Trace, ClocksOfHostsArePutTogether) {
  constexpr std::int64_t kLead = 1'000'000'000'000;
  // In true time: rank 1 is last in the first call, rank 0 in the second.
  write(0, 2, 0, 1000, {{1, 100, 210}, {2, 400, 450}});
  write(1, 2, 1, kLead, {{1, 200, 220}, {2, 300, 460}});
  const JobTrace job = read_trace(folder_);
  EXPECT_EQ(job.ranks[0].calls[0].begin, 0);
  // Known to within [end of 0 - begin of 1, begin of 0 - end of 1] over both calls: -60 .. +10.
  const auto off = job.ranks[1].calls[0].begin - 100;
  EXPECT_LE(off, 10);
  EXPECT_GE(off, -60);
  // No rank leaves before all are there.
  for (int call = 0; call < 2; ++call) {
    const auto at = static_cast<std::size_t>(call);
    EXPECT_GE(*job.ranks[0].calls[at].end, job.ranks[1].calls[at].begin);
    EXPECT_GE(*job.ranks[1].calls[at].end, job.ranks[0].calls[at].begin);
  }
}

TEST_F(Trace, SummarySaysWhoWasWaitedFor) {
  write(0, 3, 0, 0, {{1, 0, 1050}, {2, 2000, 3100}, {3, 4000, 4020}});
  write(1, 3, 0, 0, {{1, 100, 1050}, {2, 2500, 3100}, {3, 4005, 4020}});
  write(2, 3, 0, 0, {{1, 1000, 1060}, {2, 3000, 3100}, {3, 4001, 4030}});
  const TraceSummary summary = summarize(read_trace(folder_));
  EXPECT_EQ(summary.calls, 3u);
  EXPECT_TRUE(summary.loose.empty());
  ASSERT_EQ(summary.lines.size(), 1u);
  const TraceLine& line = summary.lines[0];
  EXPECT_EQ(line.call, "all_reduce");
  EXPECT_EQ(line.group, "world");
  EXPECT_EQ(line.engine, "shm");
  EXPECT_EQ(line.bytes, 4096u);
  EXPECT_EQ(line.count, 3u);
  EXPECT_NEAR(line.total_s, (1060 + 1100 + 30) * 1e-9, 1e-15);
  EXPECT_NEAR(line.median_us, 1.060, 1e-9);
  EXPECT_NEAR(line.max_us, 1.100, 1e-9);
  EXPECT_NEAR(line.waited_s, (1000 + 1000 + 5) * 1e-9, 1e-15);
  EXPECT_EQ(line.latest, 2);
  EXPECT_NEAR(line.latest_share, 2.0 / 3, 1e-9);
  EXPECT_NEAR(summary.waiting_s[0], (1000 + 1000 + 5) * 1e-9, 1e-15);
  EXPECT_NEAR(summary.waiting_s[1], (900 + 500 + 0) * 1e-9, 1e-15);
  EXPECT_NEAR(summary.waiting_s[2], 4e-9, 1e-15);
  EXPECT_NEAR(summary.calling_s[1], (950 + 600 + 15) * 1e-9, 1e-15);
}

TEST_F(Trace, SummarySaysWhatNeverEnded) {
  write(0, 3, 0, 0, {{1, 0, 10}, {2, 20, -1}});
  write(1, 3, 0, 0, {{1, 0, 10}, {2, 20, 90, true}});
  write(2, 3, 0, 0, {{1, 0, 10}});
  const TraceSummary summary = summarize(read_trace(folder_));
  EXPECT_EQ(summary.lines.size(), 1u);
  ASSERT_EQ(summary.loose.size(), 1u);
  const TraceLoose& loose = summary.loose[0];
  EXPECT_EQ(loose.sequence, 2u);
  EXPECT_EQ(loose.inside, std::vector<int>{0});
  EXPECT_EQ(loose.failed, std::vector<int>{1});
  EXPECT_EQ(loose.missing, std::vector<int>{2});
}

std::string refusal(const std::string& folder) {
  try {
    read_trace(folder);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST_F(Trace, OtherFoldersAreRefusedInWords) {
  EXPECT_NE(refusal(folder_).find("has no rank-N.trace"), std::string::npos);
  std::ofstream(file(0)) << "nothing of the kind";
  EXPECT_NE(refusal(folder_).find("is too short"), std::string::npos);
  std::ofstream(file(0)) << std::string(5000, 'x');
  EXPECT_NE(refusal(folder_).find("is no trace"), std::string::npos);
  write(0, 2, 0, 0, {{1, 0, 10}});
  write(1, 3, 0, 0, {{1, 0, 10}});
  EXPECT_NE(refusal(folder_).find("more than one job"), std::string::npos);
  EXPECT_THROW(read_trace(folder_ + "/absent"), SystemError);
}

TEST_F(Trace, BrokenFilesEndInAnErrorOrATrace) {
  write(0, 2, 0, 0, {{1, 0, 10}, {2, 20, 30}, {3, 40, -1}});
  const auto whole = contents(0);
  std::mt19937 random(1);
  int read = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    auto broken = whole;
    for (int flips = 0; flips < 3; ++flips) {
      // The header's fields and the records; what lies between means nothing.
      auto at = random() % (sizeof(TraceHeader) + 5 * sizeof(TraceRecord));
      if (at >= sizeof(TraceHeader)) at += observe::kTraceHeaderBytes - sizeof(TraceHeader);
      broken[at] = static_cast<std::byte>(random());
    }
    if (random() % 8 == 0) broken.resize(random() % broken.size());
    try {
      JobTrace job;
      job.ranks.push_back(parse_rank_trace(broken));
      summarize(job);
      ++read;
    } catch (const InvalidArgument&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

TEST_F(Trace, AForkedChildKeepsWhatLiesAtTheirPlaces) {
  const std::size_t page = 4096;
  std::optional<observe::MappedFile> mapped;
  mapped.emplace(folder_, "mapped", observe::MappedFile::Purpose{"a test", "tested"}, page);
  std::byte* const chunk = mapped->chunk(0);
  ASSERT_NE(chunk, nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    void* const own = ::mmap(chunk,
                             page,
                             PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                             -1,
                             0);
    mapped.reset();
    unsigned char resident = 0;
    _exit(own == chunk && ::mincore(own, page, &resident) == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Trace, FoldersThatCannotBeMadeAreAnError) {
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_THROW(TraceFile::make(folder_ + "/file/below", {}), SystemError);
}

}  // namespace
}  // namespace hocket
