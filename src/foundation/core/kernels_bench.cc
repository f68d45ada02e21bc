// Measures the throughput of the host's reductions, copies and digests, in bytes of one array per
// second.
//
//     kernels_bench --benchmark_filter='reduce/float32/sum'
//
// Names: reduce/<dtype>/<op>/<sources>/<cached or streaming>/<bytes of one array>
//        copy/<cached or streaming>/<bytes>
//        digest/<dtype>/<bytes>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foundation/core/digest.h"
#include "foundation/core/reduce.h"

namespace {

using hocket::DType;
using hocket::ReduceOp;
using hocket::core::Stores;

constexpr std::int64_t kSizes[] = {64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20};

// Makes an array whose elements, of every dtype, stay normal numbers when they are reduced. The
// byte 0x3b sets low bits of the exponents, so there are neither NaNs nor subnormals.
std::vector<std::byte> make_array(std::int64_t bytes) {
  return std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0x3b});
}

void reduce(benchmark::State& state, DType dtype, ReduceOp op, int n_sources, Stores stores) {
  const std::int64_t bytes = state.range(0);
  std::vector<std::vector<std::byte>> arrays;
  for (int s = 0; s < n_sources; ++s) arrays.push_back(make_array(bytes));
  std::vector<std::byte> out = make_array(bytes);
  std::vector<const void*> sources;
  for (const auto& array : arrays) sources.push_back(array.data());
  const std::size_t count = static_cast<std::size_t>(bytes) / size_of(dtype);
  for (auto _ : state) {
    hocket::core::reduce(
        out.data(), sources.data(), n_sources, count, dtype, op, n_sources, stores);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void copy(benchmark::State& state, Stores stores) {
  const std::vector<std::byte> in = make_array(state.range(0));
  std::vector<std::byte> out = make_array(state.range(0));
  for (auto _ : state) {
    hocket::core::copy(out.data(), in.data(), in.size(), stores);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void digest(benchmark::State& state, DType dtype) {
  const std::int64_t bytes = state.range(0);
  const std::vector<std::byte> in = make_array(bytes);
  std::vector<hocket::core::Digest> digests(64);
  const std::size_t block = std::max<std::size_t>(1024, in.size() / 64);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        hocket::core::digest_blocks(in.data(), in.size(), block, dtype, digests.data()));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void add_sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t bytes : kSizes) benchmark->Arg(bytes);
}

std::string name_of_stores(Stores stores) {
  return stores == Stores::kCached ? "cached" : "streaming";
}

void register_all() {
  for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
    add_sizes(
        benchmark::RegisterBenchmark(("copy/" + name_of_stores(stores)).c_str(),
                                     [stores](benchmark::State& state) { copy(state, stores); }));
  }
  for (const DType dtype : {DType::kUInt8, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    add_sizes(
        benchmark::RegisterBenchmark(("digest/" + std::string(name_of(dtype))).c_str(),
                                     [dtype](benchmark::State& state) { digest(state, dtype); }));
  }
  for (int d = 0; d < hocket::kDTypeCount; ++d) {
    for (int o = 0; o < hocket::kReduceOpCount; ++o) {
      const auto dtype = static_cast<DType>(d);
      const auto op = static_cast<ReduceOp>(o);
      if (!is_defined(op, dtype)) continue;
      for (const int n : {2, 4}) {
        for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
          const std::string name = "reduce/" + std::string(name_of(dtype)) + "/" +
                                   std::string(name_of(op)) + "/" + std::to_string(n) + "/" +
                                   name_of_stores(stores);
          add_sizes(benchmark::RegisterBenchmark(
              name.c_str(), [=](benchmark::State& state) { reduce(state, dtype, op, n, stores); }));
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
