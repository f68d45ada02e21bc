#include "engines/nvshmem/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "foundation/os/library.h"

namespace hocket::nvshmem {
namespace {

constexpr const char* kInstead = "hocket's own memory of GPUs (heap \"hocket\") has no such limit";

bool is_initialized(const Facts& f) { return f.status >= NvshmemStatus::kInitialized; }

std::string check_libraries(std::span<const Facts> facts) {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Facts& f = facts[i];
    if (!f.why_not.empty()) return fmt::format("rank {}: {}", i, f.why_not.view());
    if (f.version != facts[0].version) {
      return fmt::format("rank 0 has NVSHMEM {} and rank {} {}; all need the same one",
                         os::text_of_version(facts[0].version),
                         i,
                         os::text_of_version(f.version));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (std::memcmp(&facts[j].gpu, &f.gpu, sizeof f.gpu) == 0) {
        return fmt::format("ranks {} and {} use one GPU, and NVSHMEM wants one a rank", j, i);
      }
    }
    if (f.status == NvshmemStatus::kBootstrapped) {
      return fmt::format("rank {} has begun to start NVSHMEM and not ended it; end it there first",
                         i);
    }
  }
  return "";
}

// All processes run NVSHMEM. Returns why their PE numbers cannot belong to one world, or "".
std::string check_numbers(std::span<const Facts> facts) {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Facts& f = facts[i];
    const bool is_taken = std::ranges::count(facts.first(i), f.pe, &Facts::pe) != 0;
    if (is_taken || f.pe < 0 || f.pe >= f.pes) {
      return fmt::format(
          "NVSHMEM runs in rank {} as PE {}, which it cannot be beside the others; {}",
          i,
          f.pe,
          kInstead);
    }
  }
  return "";
}

// All processes run NVSHMEM. Returns why they are not exactly the PEs of one world, or "".
std::string check_world(std::span<const Facts> facts, bool whole_job) {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Facts& f = facts[i];
    if (f.pes != static_cast<int>(facts.size())) {
      return fmt::format(
          "NVSHMEM runs in rank {} as PE {} of {}, and these are {} ranks: its heap gives memory "
          "to all its PEs together, and a process has one NVSHMEM. Make the array with a "
          "communicator of all of them, and use it in this one; where some have ended, or are not "
          "of this job, {}",
          i,
          f.pe,
          f.pes,
          facts.size(),
          kInstead);
    }
    if (f.world != facts[0].world || (f.world == 0 && !whole_job)) {
      return fmt::format(
          "NVSHMEM runs in ranks 0 and {}, but not as one world of these ranks alone, as far as "
          "can be told; {}",
          i == 0 ? facts.size() - 1 : i,
          kInstead);
    }
    if (f.pieces != facts[0].pieces) {
      return fmt::format("rank 0 has {} pieces of NVSHMEM's heap and rank {} {}; {}",
                         facts[0].pieces,
                         i,
                         f.pieces,
                         kInstead);
    }
  }
  return check_numbers(facts);
}

}  // namespace

HeapAgreement agree(std::span<const Facts> facts, bool whole_job) {
  HeapAgreement agreed{.why_not = check_libraries(facts), .pes = std::vector<int>(facts.size())};
  if (!agreed.why_not.empty()) return agreed;
  const auto running = std::ranges::count_if(facts, is_initialized);
  if (running == 0) {
    agreed.start = true;
    std::iota(agreed.pes.begin(), agreed.pes.end(), 0);
    return agreed;
  }
  const auto missing = std::ranges::find_if_not(facts, is_initialized);
  if (missing != facts.end()) {
    const auto there = std::ranges::find_if(facts, is_initialized);
    agreed.why_not = fmt::format(
        "NVSHMEM runs in rank {} as PE {} of {} and not in rank {}, and a process has one: the "
        "first communicator that asks for its heap decides which ranks it is of; {}",
        there - facts.begin(),
        there->pe,
        there->pes,
        missing - facts.begin(),
        kInstead);
    return agreed;
  }
  agreed.why_not = check_world(facts, whole_job);
  agreed.name = agreed.why_not.empty() && facts[0].world == 0;
  std::ranges::transform(facts, agreed.pes.begin(), &Facts::pe);
  return agreed;
}

TeamAgreement agree_team(std::span<const Facts> facts, bool whole_job) {
  TeamAgreement agreed{.why_not = check_libraries(facts)};
  agreed.whole_world = facts[0].pes == static_cast<int>(facts.size());
  for (std::size_t i = 0; i < facts.size() && agreed.why_not.empty(); ++i) {
    if (!is_initialized(facts[i])) {
      agreed.why_not = fmt::format(
          "it does not run in rank {}; make an array in its heap first, with a communicator of all "
          "ranks that are to use it",
          i);
    } else if (facts[i].world != facts[0].world || facts[i].pes != facts[0].pes) {
      agreed.why_not = fmt::format("ranks 0 and {} are in different worlds of it", i);
    } else if (facts[i].world == 0 && !(whole_job && agreed.whole_world)) {
      agreed.why_not = fmt::format(
          "the program has started it in rank {}, as PE {} of {}, and whose world that is cannot "
          "be told from these {} ranks; make an array in its heap first, with a communicator of "
          "all ranks of the job",
          i,
          facts[i].pe,
          facts[i].pes,
          facts.size());
    }
  }
  if (agreed.why_not.empty()) agreed.why_not = check_numbers(facts);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    agreed.whole_world = agreed.whole_world && facts[i].pe == static_cast<int>(i);
  }
  return agreed;
}

}  // namespace hocket::nvshmem
