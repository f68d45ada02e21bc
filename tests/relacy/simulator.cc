#include "simulator.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

// Last, as it redefines words of the language.
#include <relacy/relacy.hpp>
#undef new
#undef delete
#undef malloc
#undef free
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst

namespace hocket::relacy {
namespace {

// Holds the difference from the initial value, because Relacy begins each cell with zero.
using Cell = rl::generic_atomic<std::uint64_t, true>;
using Token = rl::var<int>;

// State of the current execution. If an execution fails, Relacy leaves its threads as they stand,
// so this state is cleared only then.
struct Execution {
  std::unordered_map<const void*, Cell*> cells;
  std::unordered_map<const void*, Token*> tokens;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> shared;
  bool runs = false;
};

struct Run {
  const Factory* make = nullptr;
  Options options;
  Outcome outcome;
  Execution execution;
  std::uint64_t number = 0;
  bool alone = false;  // what runs now is no thread of the program
};
Run* run = nullptr;

std::string name_of(const char* operation, Site site) {
  const std::string_view file(site.file_name());
  std::string_view function(site.function_name());
  function = function.substr(0, function.find('('));
  function = function.substr(function.rfind(' ') + 1);
  std::ostringstream name;
  name << file.substr(file.rfind('/') + 1) << ":" << site.line() << " " << function << " "
       << operation;
  return name.str();
}

rl::debug_info info_of(Site site) {
  return rl::debug_info(site.function_name(), site.file_name(), site.line());
}

// An operation as it is executed. It is recorded, and weakened if it is the mutation under test.
struct Made {
  rl::memory_order order;
  bool dropped;
};
Made made(const char* operation, std::memory_order order, bool stores, Site site) {
  const bool orders = order != std::memory_order_relaxed;
  bool relaxed = false;
  bool dropped = false;
  if (!run->alone && (orders || stores)) {
    const std::string name = name_of(operation, site);
    if (orders) run->outcome.ordering.insert(name);
    if (stores) run->outcome.storing.insert(name);
    const Mistake& mistake = run->options.mistake;
    if (mistake.site == name) {
      relaxed = mistake.kind == Mistake::Kind::kRelaxed;
      dropped = mistake.kind == Mistake::Kind::kDropped;
    }
  }
  if (relaxed) return {rl::mo_relaxed, false};
  switch (order) {
    case std::memory_order_relaxed:
      return {rl::mo_relaxed, dropped};
    case std::memory_order_consume:
    case std::memory_order_acquire:
      return {rl::mo_acquire, dropped};
    case std::memory_order_release:
      return {rl::mo_release, dropped};
    case std::memory_order_acq_rel:
      return {rl::mo_acq_rel, dropped};
    default:
      return {rl::mo_seq_cst, dropped};
  }
}

// True if the caller is a thread of an execution. Objects are also made and read outside.
bool running() { return run != nullptr && run->execution.runs; }

Cell& cell_at(const void* at) {
  Cell*& cell = run->execution.cells[at];
  if (cell == nullptr) cell = new Cell;
  return *cell;
}

// Relacy replaces new and delete, and counts what an execution leaves. The standard library's own
// code has its own: so all of it comes from the system.
struct Allocation : rl::context {
  static void leave_to_the_system() {
    constexpr int rl::context::* kCount = &Allocation::disable_alloc_;
    ++(rl::ctx().*kCount);
  }
};

// One program. Relacy needs the number of threads at compile time.
template <int kThreads>
struct Suite : rl::test_suite<Suite<kThreads>, kThreads> {
  Suite() {
    Allocation::leave_to_the_system();
    run->execution = {};
    ++run->number;
    run->execution.runs = run->alone = true;
    program = (*run->make)();
  }
  ~Suite() {
    program.reset();
    run->execution.runs = false;
    for (const auto& [at, cell] : run->execution.cells) delete cell;
    for (const auto& [at, token] : run->execution.tokens) delete token;
    run->execution = {};
  }
  void before() {
    program->before();
    run->alone = false;
  }
  void thread(unsigned number) { program->thread(static_cast<int>(number)); }
  void after() {
    run->alone = true;
    program->after();
  }

  std::unique_ptr<Program> program;
};

template <int kThreads>
void simulate_threads() {
  rl::test_params parameters;
  std::ostringstream shown;
  parameters.iteration_count = static_cast<rl::iteration_t>(run->options.executions);
  parameters.output_stream = &shown;
  parameters.progress_stream = &shown;
  parameters.execution_depth_limit = 20'000;
  parameters.collect_history = run->options.show;
  run->outcome.passed = rl::simulate<Suite<kThreads>>(parameters);
  if (!run->outcome.passed) {
    run->outcome.text = rl::test_result_str(parameters.test_result);
    if (run->options.show) run->outcome.text += "\n" + shown.str();
  }
}

}  // namespace

Outcome simulate(int threads, const Factory& make, const Options& options) {
  Run own;
  own.make = &make;
  own.options = options;
  run = &own;
  if (threads == 2) simulate_threads<2>();
  if (threads == 3) simulate_threads<3>();
  if (threads == 4) simulate_threads<4>();
  run = nullptr;
  return own.outcome;
}

void check(bool holds, const char* what, Site site) {
  if (!holds) rl::ctx().fail_test(what, rl::test_result_user_assert_failed, info_of(site));
}

void yield() noexcept { rl::yield(1, $); }

std::uintptr_t this_thread() noexcept {
  return run->alone ? 1 : static_cast<std::uintptr_t>(rl::ctx().threadx_->index_) + 1;
}

std::uint64_t load(const void* at, std::uint64_t initial, std::memory_order order, Site site) {
  if (!running()) return initial;
  const Made how = made("load", order, false, site);
  return initial + cell_at(at).load(how.order, info_of(site));
}

void store(
    void* at, std::uint64_t initial, std::uint64_t value, std::memory_order order, Site site) {
  const Made how = made("store", order, true, site);
  if (how.dropped) return;
  cell_at(at).store(value - initial, how.order, info_of(site));
}

std::uint64_t update(void* at,
                     std::uint64_t initial,
                     Update update,
                     std::uint64_t operand,
                     std::memory_order order,
                     Site site) {
  const Made how = made("update", order, true, site);
  Cell& cell = cell_at(at);
  if (how.dropped) return initial + cell.load(rl::mo_relaxed, info_of(site));
  switch (update) {
    case Update::kAdd:
      return initial + cell.fetch_add(operand, how.order, info_of(site));
    case Update::kOr:
      check(initial == 0, "or needs zeros to begin with", site);
      return cell.fetch_or(operand, how.order, info_of(site));
    case Update::kAnd:
      check(initial == 0, "and needs zeros to begin with", site);
      return cell.fetch_and(operand, how.order, info_of(site));
    default:
      return initial + cell.exchange(operand - initial, how.order, info_of(site));
  }
}

bool compare_exchange(void* at,
                      std::uint64_t initial,
                      std::uint64_t& expected,
                      std::uint64_t desired,
                      std::memory_order order,
                      Site site) {
  const Made how = made("compare_exchange", order, false, site);
  std::uint64_t seen = expected - initial;
  const bool done =
      cell_at(at).compare_exchange_strong(seen, desired - initial, how.order, info_of(site));
  expected = seen + initial;
  return done;
}

void fence(std::memory_order order, Site site) {
  const Made how = made("fence", order, false, site);
  if (how.order == rl::mo_relaxed) return;
  rl::atomic_thread_fence(how.order, info_of(site));
}

void heavy_fence(Site site) {
  const Made how = made("fence", std::memory_order_seq_cst, false, site);
  if (how.order != rl::mo_relaxed) rl::systemwide_fence(info_of(site));
}

void sleep_on(void* at, std::uint64_t initial, std::uint64_t expected, Site site) {
  // The kernel reads the newest value. No wake-up comes between that read and the sleep.
  Cell& cell = cell_at(at);
  if (initial + cell.fetch_add(0, rl::mo_seq_cst, info_of(site)) != expected) return;
  cell.wait(rl::ctx(), false, true, info_of(site));
}

void wake_all(void* at, Site site) {
  const Made how = made("wake", std::memory_order_relaxed, true, site);
  if (how.dropped) return;
  Cell& cell = cell_at(at);
  cell.fetch_add(0, rl::mo_seq_cst, info_of(site));
  cell.wake(rl::ctx(), 1'000, info_of(site));
}

void read_plain(const void* value, Site site) {
  if (!running()) return;
  // A value that was never written is as it was before the execution.
  const auto found = run->execution.tokens.find(value);
  if (found != run->execution.tokens.end()) (*found->second)(info_of(site)).load();
}

void write_plain(void* value, Site site) {
  if (!running()) return;
  Token*& token = run->execution.tokens[value];
  if (token == nullptr) token = new Token;
  (*token)(info_of(site)).store(0);
}

namespace {
// Calls `use` with the first, the middle and the last word of eight bytes of a range, which stand
// for all of it.
template <typename Use>
void each_mark(const void* at, std::size_t bytes, const Use& use) {
  if (!running() || bytes == 0) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const bool is_shared =
      std::any_of(run->execution.shared.begin(), run->execution.shared.end(), [&](const auto& all) {
        return begin >= all.first && begin < all.second;
      });
  if (!is_shared) return;
  const std::uintptr_t first = begin / 8 * 8;
  const std::uintptr_t last = (begin + bytes - 1) / 8 * 8;
  for (const std::uintptr_t mark : {first, (first + last) / 16 * 8, last}) {
    use(reinterpret_cast<void*>(mark));
  }
}
}  // namespace

void share(const void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  run->execution.shared.emplace_back(begin, begin + bytes);
}

void read_bytes(const void* at, std::size_t bytes, Site site) {
  each_mark(at, bytes, [&](const void* mark) { read_plain(mark, site); });
}

void write_bytes(void* at, std::size_t bytes, Site site) {
  each_mark(at, bytes, [&](void* mark) { write_plain(mark, site); });
}

std::uint64_t execution() noexcept { return run == nullptr ? 0 : run->number; }

}  // namespace hocket::relacy
