#include "interfaces/cli/bench/peer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <new>

#include "interfaces/cli/bench/wire.h"
#include "interfaces/cli/cpu_mask.h"

namespace hocket::cli::bench {
namespace {

// Returns the processors that this thread may run on, as "0-3,8".
std::string allowed_processors() {
  const auto mask = CpuMask::allowed();
  if (!mask) return "?";
  std::string text;
  for (int first = 0; first < CpuMask::kMost; ++first) {
    if (!mask->contains(first)) continue;
    int last = first;
    while (last + 1 < CpuMask::kMost && mask->contains(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
    first = last;
  }
  return text;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A case that the command has opened.
struct Slot {
  Case subject;
  Bound bound;
};

// A resource: the open cases of one rank.
class OpenCases {
 public:
  explicit OpenCases(Library& library) : library_(library) {}

  Answer answer(const Request& request) {
    switch (request.verb) {
      case Verb::kOpen:
        return open(request);
      case Verb::kCheck:
        return check_results(slots_.at(request.slot), request.seed);
      case Verb::kRun:
        return run(slots_.at(request.slot), request);
      case Verb::kClose:
        slots_.erase(request.slot);
        return {};
    }
    return {};
  }

 private:
  Answer open(const Request& request) {
    if (auto why = library_.refusal(request.subject)) return {Outcome::kRefused, 0, *why};
    slots_.insert_or_assign(request.slot, Slot{request.subject, library_.bind(request.subject)});
    return {};
  }

  Answer check_results(Slot& slot, std::uint32_t seed) {
    const JobRank self = library_.job_rank();
    fill(slot.subject, self, seed, slot.bound.arrays);
    slot.bound.upload();
    slot.bound.calls(1);
    slot.bound.download();
    const std::string wrong = check(slot.subject, self, seed, slot.bound.arrays);
    clear_in_place(slot);
    if (!wrong.empty()) return {Outcome::kWrong, 0, wrong};
    return {};
  }

  // Sets the array of a reduction in place to zeros. Repeated sums would otherwise overflow.
  void clear_in_place(Slot& slot) {
    if (!slot.subject.in_place) return;
    const JobRank self = library_.job_rank();
    const Shape shape = shape_of(slot.subject, self.rank, self.ranks);
    if (shape.out > 0) {
      std::memset(slot.bound.arrays.out, 0, shape.out * size_of(slot.subject.dtype));
    }
    slot.bound.upload();
  }

  using Clock = std::chrono::steady_clock;

  Answer run(Slot& slot, const Request& request) {
    slot.bound.calls(request.warmup);
    const Clock::duration took =
        request.dirty ? run_dirty(slot, request.calls) : run_warm(slot, request.calls);
    return {
        Outcome::kDone,
        std::chrono::duration_cast<std::chrono::nanoseconds>(took).count(),
        "",
    };
  }

  Clock::duration run_warm(Slot& slot, long calls) {
    library_.barrier();
    const auto begin = Clock::now();
    slot.bound.calls(calls);
    return Clock::now() - begin;
  }

  // Returns the time of the calls alone. Before each call its input is rewritten, as a program
  // would do. Then a barrier makes sure that no call waits for another rank's writing.
  Clock::duration run_dirty(Slot& slot, long calls) {
    Clock::duration took{};
    for (long i = 0; i < calls; ++i) {
      rewrite(slot);
      library_.barrier();
      const auto begin = Clock::now();
      slot.bound.calls(1);
      took += Clock::now() - begin;
    }
    return took;
  }

  // Writes to every cache line of this rank's input without changing it.
  void rewrite(const Slot& slot) const {
    constexpr std::size_t kLine = 64;
    const JobRank self = library_.job_rank();
    const Shape shape = shape_of(slot.subject, self.rank, self.ranks);
    const bool from_out = shape.in == 0;  // in place
    const std::size_t bytes = (from_out ? shape.out : shape.in) * size_of(slot.subject.dtype);
    auto* data = static_cast<volatile unsigned char*>(from_out ? slot.bound.arrays.out
                                                               : slot.bound.arrays.in);
    for (std::size_t at = 0; at < bytes; at += kLine) data[at] = data[at];
  }

  Library& library_;
  std::map<int, Slot> slots_;
};

}  // namespace

std::shared_ptr<void> ordinary_memory(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t rounded = std::max(kPage, (bytes + kPage - 1) / kPage * kPage);
  void* memory = std::aligned_alloc(kPage, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  // Writes to all pages, so that no measured call has to fault them in.
  std::memset(memory, 0, rounded);
  return {memory, std::free};
}

void bind_ordinary_arrays(Bound& bound, const Case& subject, JobRank self) {
  const Shape shape = shape_of(subject, self.rank, self.ranks);
  const std::size_t width = size_of(subject.dtype);
  if (shape.in > 0) {
    bound.owners.push_back(ordinary_memory(shape.in * width));
    bound.arrays.in = bound.owners.back().get();
  }
  if (shape.out > 0) {
    bound.owners.push_back(ordinary_memory(shape.out * width));
    bound.arrays.out = bound.owners.back().get();
  }
}

int serve(Library& library) {
  try {
    Channel channel = connect_to_command(variable(kSocketVariable));
    const JobRank self = library.job_rank();
    channel.write_line(to_line(Hello{.token = variable(kTokenVariable),
                                     .library = library.name(),
                                     .rank = self.rank,
                                     .ranks = self.ranks,
                                     .processors = allowed_processors(),
                                     .version = library.version()}));
    OpenCases cases(library);
    while (auto line = channel.read_line()) {
      Answer answer;
      try {
        answer = cases.answer(parse_request(*line));
      } catch (const std::exception& error) {
        answer = {Outcome::kFailed, 0, error.what()};
      }
      channel.write_line(to_line(answer));
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(
        stderr, "%s, rank %d: %s\n", library.name().c_str(), library.job_rank().rank, error.what());
    return 1;
  }
}

}  // namespace hocket::cli::bench
