// Simulates collectives on increasing numbers of ranks, and writes the times as a document:
//
//     scaling --write build/scaling.md --picture docs/scaling.svg
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "pages.h"

namespace hocket::scaling {
namespace {

using engine::Kind;

// The first lines of the document.
constexpr const char* kTitle =
    "# How collectives scale: all tables\n\nWritten by tools/speed/scaling. docs/scaling.md "
    "explains "
    "them.\n";

struct Options {
  std::vector<std::string> collectives;
  std::vector<std::size_t> sizes{8, 64 << 10, 1 << 20, 64 << 20};
  std::vector<int> ranks{8, 16, 64, 256, 1024, 4096, 16384};
  std::vector<int> per_host{1, 8};
  std::uint64_t most_messages = 5'000'000;
  std::string document;
  std::string picture;
};

// The collectives in the order of the document: all_reduce is first. The barrier is last, because
// it has no sizes.
std::vector<Kind> kinds_shown() {
  std::vector<Kind> kinds{Kind::kAllReduce};
  for (const engine::KindRow& row : engine::kKinds) {
    const bool apart = row.kind == Kind::kAllReduce || row.kind == Kind::kBarrier;
    if (is_carried(row.kind) && !is_listed(row.kind) && !apart) kinds.push_back(row.kind);
  }
  kinds.push_back(Kind::kBarrier);
  return kinds;
}

bool wanted(const Options& options, Kind kind) {
  const auto& names = options.collectives;
  return names.empty() ||
         std::find(names.begin(), names.end(), engine::name_of(kind)) != names.end();
}

std::vector<Grid> simulate_placement(const Options& options, int per_host) {
  std::vector<Grid> grids;
  std::vector<int> ranks;
  for (const int n : options.ranks) {
    if (n >= 2 * per_host) ranks.push_back(n);
  }
  for (const Kind kind : kinds_shown()) {
    if (!wanted(options, kind)) continue;
    for (const std::size_t bytes : options.sizes) {
      if (kind == Kind::kBarrier && bytes != options.sizes.front()) continue;
      const auto begin = std::chrono::steady_clock::now();
      grids.push_back(
          simulate_all({.kind = kind, .bytes = bytes, .ranks = ranks.front(), .per_host = per_host},
                       ranks,
                       options.most_messages));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      fmt::print(stderr, "{} ({:.1f} s)\n", title_of(grids.back()), took.count());
    }
  }
  return grids;
}

std::string heading(int per_host) {
  return per_host == 1 ? "## One rank a host" : fmt::format("## {} ranks a host", per_host);
}

void write(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

int run(const Options& options) {
  std::string text;
  std::vector<Grid> pictured;
  for (const int per_host : options.per_host) {
    text += fmt::format("\n{}\n", heading(per_host));
    for (Grid& grid : simulate_placement(options, per_host)) {
      text += fmt::format("\n{}", table_of(grid));
      if (grid.first.kind == Kind::kAllReduce) pictured.push_back(std::move(grid));
    }
  }
  if (!options.picture.empty()) write(options.picture, picture_of(pictured));
  if (options.document.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  write(options.document, kTitle + text);
  return 0;
}

}  // namespace
}  // namespace hocket::scaling

int main(int argc, char** argv) {
  hocket::scaling::Options options;
  CLI::App app("Collectives on many ranks, in simulated time");
  app.add_option("--collectives", options.collectives, "by name; default: all")->delimiter(',');
  app.add_option("--sizes", options.sizes, "bytes of a rank's larger array")->delimiter(',');
  app.add_option("--ranks", options.ranks, "numbers of ranks")->delimiter(',');
  app.add_option("--per-host", options.per_host, "ranks of a host")->delimiter(',');
  app.add_option("--messages", options.most_messages, "simulate no more; the model answers then");
  app.add_option("--write", options.document, "the document to be written");
  app.add_option("--picture", options.picture, "an SVG file of the all_reduce");
  CLI11_PARSE(app, argc, argv);
  try {
    return hocket::scaling::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "scaling: {}\n", error.what());
    return 1;
  }
}
