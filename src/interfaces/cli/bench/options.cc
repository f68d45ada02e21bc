#include "interfaces/cli/bench/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "hocket/algorithm.h"
#include "hocket/error.h"
#include "interfaces/cli/bench/libraries.h"
#include "interfaces/cli/run/launcher.h"

namespace hocket::cli::bench {
namespace {

// The largest size, 8 TiB. Its product with the largest --factor fits into 64 bits.
constexpr std::size_t kMostBytes = std::size_t{1} << 43;

std::size_t parse_bytes(const std::string& text) {
  std::size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
  std::string unit = text.substr(digits);
  if (unit.size() > 1 && (unit.substr(1) == "iB" || unit.substr(1) == "B")) unit.resize(1);
  const std::string units = "KMG";
  const std::size_t place = unit.empty() ? 0 : units.find(unit) + 1;
  const bool known = unit.empty() || unit == "B" || (unit.size() == 1 && place > 0);
  if (digits == 0 || digits > 12 || !known) {
    throw InvalidArgument(
        fmt::format("'{}' is no size: write bytes, or 64K, 16M, 1G (powers of 1024)", text));
  }
  const std::size_t number = std::stoull(text.substr(0, digits));
  const std::size_t shift = unit == "B" ? 0 : 10 * place;
  if (number > kMostBytes >> shift) {
    throw InvalidArgument(fmt::format("'{}' is too large: sizes are at most 8192G", text));
  }
  return number << shift;
}

std::vector<std::size_t> sizes_of(const Arguments& arguments) {
  std::vector<std::size_t> sizes;
  for (const std::string& text : arguments.sizes) sizes.push_back(parse_bytes(text));
  if (!sizes.empty()) return sizes;
  const std::size_t max = parse_bytes(arguments.max);
  for (std::size_t size = std::max<std::size_t>(1, parse_bytes(arguments.min)); size <= max;
       size *= static_cast<std::size_t>(arguments.factor)) {
    sizes.push_back(size);
  }
  if (!sizes.empty() && sizes.back() < max) sizes.push_back(max);
  if (sizes.empty()) {
    throw InvalidArgument(fmt::format(
        "--min {} is above --max {}: there is nothing to measure", arguments.min, arguments.max));
  }
  return sizes;
}

std::vector<Collective> collectives_of(const Arguments& arguments, int ranks) {
  if (arguments.collectives.empty() && !arguments.tune_file.empty()) {
    return {Collective::kBarrier,
            Collective::kAllReduce,
            Collective::kReduce,
            Collective::kReduceScatter,
            Collective::kBroadcast,
            Collective::kAllGather,
            Collective::kGather,
            Collective::kScatter,
            Collective::kAllToAll};
  }
  if (arguments.collectives.empty()) return {Collective::kAllReduce};
  std::vector<Collective> collectives;
  for (const std::string& word : arguments.collectives) {
    std::string known;
    bool found = false;
    for (const Collective one : kCollectives) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name_of(one));
      if (word != name_of(one) && word != "all") continue;
      found = true;
      if (word == "all" && is_of_two(one) && ranks < 2) continue;
      collectives.push_back(one);
    }
    if (!found) {
      throw InvalidArgument(
          fmt::format("there is no collective '{}'; there are {}, and all", word, known));
    }
  }
  const auto sends = std::ranges::find_if(collectives, is_of_two);
  if (sends != collectives.end() && ranks < 2) {
    throw InvalidArgument(fmt::format("{} needs two ranks: -n 2", name_of(*sends)));
  }
  return collectives;
}

std::vector<Memory> memories_of(const Arguments& arguments) {
  std::vector<Memory> memories;
  for (const std::string& word : arguments.memories) {
    if (word != "ordinary" && word != "symmetric") {
      throw InvalidArgument(
          fmt::format("--memory: there is no '{}'; there are ordinary and symmetric", word));
    }
    memories.push_back(word == "symmetric" ? Memory::kSymmetric : Memory::kOrdinary);
  }
  return memories;
}

std::vector<bool> places_of(const std::string& word) {
  if (word == "no") return {false};
  if (word == "yes") return {true};
  if (word == "both") return {false, true};
  throw InvalidArgument(fmt::format("--in-place={}: it takes yes, no or both", word));
}

}  // namespace

namespace {

// Limits the effort for a cost table. The table needs many cases, but no more precision than the
// choice of an engine needs.
void make_quick(Plan& plan, const Arguments& arguments) {
  plan.memories = {Memory::kCuda, Memory::kSymmetric};
  plan.checks = 1;
  plan.repeats = arguments.repeats.value_or(5);
  plan.batch = std::chrono::milliseconds(arguments.batch_ms.value_or(6));
  if (!arguments.sizes.empty()) return;
  const std::size_t least = parse_bytes(arguments.min), most = parse_bytes(arguments.max);
  plan.sizes.clear();
  for (const char* size : {"8",
                           "4K",
                           "16K",
                           "64K",
                           "128K",
                           "256K",
                           "512K",
                           "1M",
                           "2M",
                           "4M",
                           "16M",
                           "64M",
                           "256M",
                           "1G"}) {
    const std::size_t bytes = parse_bytes(size);
    if (bytes >= least && bytes <= most) plan.sizes.push_back(bytes);
  }
}

// Returns the numeric cases that the positional words name.
std::vector<Collective> numerics_of(const Arguments& arguments) {
  std::vector<Collective> numerics;
  for (const std::string& word : arguments.collectives) {
    for (const Collective one : kNumerics) {
      if (word == name_of(one)) numerics.push_back(one);
    }
  }
  return numerics;
}

bool is_product(const Arguments& arguments) {
  return arguments.collectives.front() == name_of(Collective::kMatmul);
}

Plan numeric_plan(const Arguments& arguments, int number) {
#ifndef HOCKET_ARRAYS
  throw InvalidArgument(
      "this hocket was built with HOCKET_ARRAYS=OFF, without transforms and products; build it "
      "with HOCKET_ARRAYS=ON");
#endif
  Plan plan;
  plan.collectives = numerics_of(arguments);
  const bool multiplies = is_product(arguments);
  const auto is_other = [&](Collective one) { return (one == Collective::kMatmul) != multiplies; };
  if (plan.collectives.size() != arguments.collectives.size() ||
      std::ranges::any_of(plan.collectives, is_other)) {
    throw InvalidArgument(
        "transforms, products and collectives are measured one at a time, as their sizes differ: "
        "hocket bench fft fft_transposed, hocket bench matmul");
  }
  for (const auto& [given, name] :
       {std::pair{arguments.device != "host", "--device"},
        {arguments.in_place != "no", "--in-place"},
        {arguments.memories != std::vector<std::string>{"ordinary"}, "--memory"},
        {arguments.dirty, "--dirty"},
        {!arguments.algorithm.empty(), "--algorithm"},
        {!arguments.tune_file.empty(), "--tune"},
        {!arguments.html_file.empty(), "--html"}}) {
    if (given) throw InvalidArgument(fmt::format("{} is for collectives", name));
  }
  if (arguments.sizes.empty()) {
    plan.sizes = multiplies ? std::vector<std::size_t>{512, 1024, 2048}
                            : std::vector<std::size_t>{64, 128, 256};
  } else {
    plan.sizes = sizes_of(arguments);
  }
  const auto ranks = static_cast<std::size_t>(number);
  for (std::size_t& n : plan.sizes) {
    const std::size_t most = multiplies ? 1 << 17 : 1 << 12;
    if (n < 1 || n > most) {
      throw InvalidArgument(fmt::format("--sizes: N is {}, expected 1 to {}", n, most));
    }
    if (multiplies || n % ranks == 0) continue;
    if (!arguments.sizes.empty()) {
      throw InvalidArgument(
          fmt::format("--sizes: {} ranks do not divide {}, as slabs of one size need", ranks, n));
    }
    n = (n + ranks - 1) / ranks * ranks;
  }
  const std::vector<DType> known = multiplies ? std::vector{DType::kFloat64, DType::kFloat32}
                                              : std::vector{DType::kComplex128, DType::kComplex64};
  if (arguments.dtype_option->count() == 0) {
    plan.dtypes = {known[0]};
  } else {
    for (const std::string& name : arguments.dtypes) {
      plan.dtypes.push_back(dtype_from_name(name));
      if (std::ranges::find(known, plan.dtypes.back()) != known.end()) continue;
      throw InvalidArgument(fmt::format("--dtype: {} is not {} or {}",
                                        name,
                                        hocket::name_of(known[0]),
                                        hocket::name_of(known[1])));
    }
  }
  plan.memories = {Memory::kOrdinary};
  plan.places = {false};
  plan.ranks = number;
  plan.repeats = arguments.repeats.value_or(plan.repeats);
  plan.batch = arguments.batch_ms ? std::chrono::milliseconds(*arguments.batch_ms) : plan.batch;
  return plan;
}

}  // namespace

bool on_gpu(const Arguments& arguments) {
  if (!arguments.tune_file.empty() || arguments.device == "cuda") return true;
  if (arguments.device == "host") return false;
  throw InvalidArgument(fmt::format("--device={}: it takes host or cuda", arguments.device));
}

std::vector<std::string> peers_of(const Arguments& arguments) {
  if (!arguments.tune_file.empty()) return {std::string(kPeerEngine), "nccl"};
  if (arguments.compare_option->count() == 0) return {};
  std::vector<std::string> peers;
  for (const std::string& word : arguments.compare) {
    if (!word.empty() && word != "all") peers.push_back(word);
  }
  const bool numeric = !numerics_of(arguments).empty();
  const std::vector<std::string> known =
      numeric ? numeric_libraries() : comparable_libraries(on_gpu(arguments));
  for (const std::string& peer : peers) {
    if (std::find(known.begin(), known.end(), peer) != known.end()) continue;
    throw InvalidArgument(
        fmt::format("--compare: there is no library '{}'; there are {}. "
                    "Collectives are written before --compare",
                    peer,
                    fmt::join(known, ", ")));
  }
  if (!peers.empty()) return peers;
  if (numeric) return {is_product(arguments) ? "scalapack" : "fftw"};
  peers = known;
  std::erase(peers, kBare);
  return peers;
}

void check_algorithm(const Arguments& arguments, const std::vector<Collective>& collectives) {
  if (arguments.algorithm.empty()) return;
  for (const Collective collective : collectives) {
    const std::vector<std::string> names = algorithm_names(name_of(collective));
    if (std::find(names.begin(), names.end(), arguments.algorithm) != names.end()) continue;
    throw InvalidArgument(
        names.empty() ? fmt::format("--algorithm: {} is made by no algorithm", name_of(collective))
                      : fmt::format("--algorithm: {} has no algorithm '{}'; it has {}",
                                    name_of(collective),
                                    arguments.algorithm,
                                    fmt::join(names, ", ")));
  }
}

// Throws if a size is not a multiple of the dtype's size, because the table would show another
// size.
void check_given_sizes(const Arguments& arguments, const Plan& plan) {
  for (std::size_t i = 0; i < arguments.sizes.size(); ++i) {
    for (const DType dtype : plan.dtypes) {
      const std::size_t bytes = plan.sizes[i];
      if (bytes > 0 && bytes % size_of(dtype) == 0) continue;
      throw InvalidArgument(
          fmt::format("--sizes: {} bytes are not one or more whole {}, of {} bytes each",
                      bytes,
                      name_of(dtype),
                      size_of(dtype)));
    }
  }
}

Plan plan_of(const Arguments& arguments, int ranks) {
  if (!numerics_of(arguments).empty()) return numeric_plan(arguments, ranks);
  Plan plan;
  plan.collectives = collectives_of(arguments, ranks);
  check_algorithm(arguments, plan.collectives);
  plan.sizes = sizes_of(arguments);
  for (const std::string& name : arguments.dtypes) plan.dtypes.push_back(dtype_from_name(name));
  check_given_sizes(arguments, plan);
  plan.op = reduce_op_from_name(arguments.op);
  plan.memories = memories_of(arguments);
  if (on_gpu(arguments)) {
    plan.plain = Memory::kCuda;
    std::ranges::replace(plan.memories, Memory::kOrdinary, Memory::kCuda);
  }
  plan.places = places_of(arguments.in_place);
  plan.ranks = ranks;
  plan.dirty = arguments.dirty;
  if (plan.dirty && on_gpu(arguments)) {
    throw InvalidArgument("--dirty is for arrays in host memory: leave out --device=cuda");
  }
  plan.repeats = arguments.repeats.value_or(plan.repeats);
  plan.batch = arguments.batch_ms ? std::chrono::milliseconds(*arguments.batch_ms) : plan.batch;
  plan.case_limit = std::chrono::seconds(arguments.timeout_s);
  if (arguments.seconds) plan.checks = 1;
  if (!arguments.tune_file.empty()) make_quick(plan, arguments);
  return plan;
}

void add_options(CLI::App& bench, Arguments& arguments) {
  bench.add_option(
      "collectives",
      arguments.collectives,
      "all_reduce (default), reduce, scan, exscan, reduce_scatter, broadcast, "
      "all_gather, gather, scatter, all_to_all, send, send_recv, send_window, isend_window, "
      "barrier, or all; or fft and fft_transposed, or matmul, of which --sizes are N");
  bench.add_option("-n,--ranks", arguments.ranks, "How many ranks; 4,8,16: one after the other")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, kMaxRanks));
  bench.add_option("--min", arguments.min, "Smallest size in bytes (8, 64K, 16M)")
      ->capture_default_str();
  bench.add_option("--max", arguments.max, "Largest size")->capture_default_str();
  bench.add_option("--factor", arguments.factor, "From one size to the next")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 20));
  bench.add_option("--sizes", arguments.sizes, "These sizes instead: 8,1K,64M")->delimiter(',');
  arguments.dtype_option =
      bench.add_option("--dtype", arguments.dtypes, "Element types: float32,bfloat16")
          ->delimiter(',')
          ->capture_default_str();
  bench.add_option("--op", arguments.op, "How reductions reduce")->capture_default_str();
  bench.add_option("--memory", arguments.memories, "ordinary,symmetric")
      ->delimiter(',')
      ->capture_default_str();
  bench.add_flag(
      "--in-place{yes}", arguments.in_place, "Results over the inputs; =both: and apart");
  bench.add_flag("--dirty",
                 arguments.dirty,
                 "Rewrite the inputs before each call, untimed, so that no rank has the others' in "
                 "its caches");
  bench.add_option("--algorithm",
                   arguments.algorithm,
                   "This one, whatever it costs (ring, rabenseifner, bruck, ...), over messages");
  arguments.compare_option =
      bench
          .add_option("--compare",
                      arguments.compare,
                      "Measure others too: openmpi,mpich,openmpi5,mpich5,impi,gloo, or a bare "
                      "program, bare; alone: all but the last. Of fft: fftw; of matmul: "
                      "scalapack")
          ->delimiter(',')
          ->expected(0, 16);
  bench
      .add_option(
          "--bind",
          arguments.bind,
          "Bind each rank of all libraries: core, none, or auto: core where there are enough")
      ->check(CLI::IsMember({"core", "none", "auto"}))
      ->capture_default_str();
  bench.add_option("--device", arguments.device, "Where the arrays lie: host, cuda")
      ->capture_default_str();
  bench
      .add_option("--launch",
                  arguments.launch,
                  "On GPUs: calls replayed from a graph, or eager, one by one")
      ->check(CLI::IsMember({"graph", "eager"}))
      ->capture_default_str();
  bench.add_option(
      "--tune",
      arguments.tune_file,
      "Measure each engine of GPUs alone, and write what engines are chosen by to this "
      "file, for HOCKET_COSTS");
  bench
      .add_option("--repeats",
                  arguments.repeats,
                  "Batches of each case, in turns with the others: 9, or 5 to tune")
      ->check(CLI::Range(1, 10000));
  bench
      .add_option(
          "--min-time", arguments.batch_ms, "How long a batch lasts, in ms: 30, or 6 to tune")
      ->check(CLI::Range(1, 60000));
  bench
      .add_option("--seconds",
                  arguments.seconds,
                  "Shorten the batches such that all of it takes about so many seconds, and leave "
                  "out what is not measured by then")
      ->check(CLI::Range(1, 86400));
  bench
      .add_option("--timeout",
                  arguments.timeout_s,
                  "Give a library up in a case that it does not answer to for so many seconds")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  bench.add_option("--json",
                   arguments.json_file,
                   "Write the figures here; - for the standard output, and the table to stderr");
  bench.add_option("--html", arguments.html_file, "Write a page with plots here");
}

}  // namespace hocket::cli::bench
