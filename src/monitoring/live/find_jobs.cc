#include <algorithm>
#include <map>
#include <tuple>

#include "foundation/os/process/process_exit.h"
#include "foundation/os/segment_holders.h"
#include "hocket/live.h"
#include "membership/control/onlooker.h"
#include "monitoring/live/rank_process.h"
#include "monitoring/live/sampler.h"

namespace hocket {
namespace {

using control::Onlooker;

constexpr const char* kOther = "it is of another version of hocket";
constexpr const char* kPrivate = "it does not want to be looked at (HOCKET_TOP=0)";

FoundJob job_of(const std::vector<os::SegmentHolder>& holders) {
  const os::SegmentView view(holders.front().path);
  const Onlooker segment(view.bytes());
  FoundJob job{.threads = holders.front().is_of_threads, .memory = holders.front().memory};
  if (segment.known() == Onlooker::Known::kNoSegment) return job;
  bool shows = false;
  if (segment.known() == Onlooker::Known::kOtherVersion) {
    job.size = 0;
    job.refusal = kOther;
    for (const os::SegmentHolder& holder : holders) job.pids.push_back(holder.pid);
  } else {
    job.size = segment.places();
    for (int place = 0; place < segment.ranks(); ++place) {
      const control::SeenRank rank = segment.rank(place);
      shows = shows || !live::is_private(segment, place);
      const os::SegmentHolder* const holder = live::find_process(rank, holders);
      if (rank.state != control::RankState::kAlive || holder == nullptr) continue;
      if (job.pids.empty() || job.pids.back() != holder->pid) job.pids.push_back(holder->pid);
    }
    if (!shows) job.refusal = kPrivate;
  }
  if (job.pids.empty()) return job;
  job.pid = job.pids.front();
  job.command = os::command_of(job.pid);
  job.name = os::variable_of(job.pid, "HOCKET_JOB");
  return job;
}

}  // namespace

std::vector<FoundJob> find_jobs() {
  std::map<std::uint64_t, std::vector<os::SegmentHolder>> by_memory;
  for (os::SegmentHolder& holder : os::segment_holders()) {
    by_memory[holder.memory].push_back(std::move(holder));
  }
  std::vector<FoundJob> jobs;
  for (const auto& [memory, holders] : by_memory) {
    try {
      FoundJob job = job_of(holders);
      if (!job.pids.empty()) jobs.push_back(std::move(job));
    } catch (const SystemError&) {  // the job has ended meanwhile
    }
  }
  std::ranges::sort(
      jobs, {}, [](const FoundJob& job) { return std::tuple(job.pid, job.threads, job.memory); });
  return jobs;
}

}  // namespace hocket
