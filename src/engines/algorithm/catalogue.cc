#include "engines/algorithm/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "hocket/algorithm.h"
#include "hocket/error.h"

namespace hocket::algorithm {

using engine::Kind;

namespace {

const Way* find(Kind kind, std::string_view name) noexcept {
  for (const Way& way : ways_of(kind)) {
    if (name_of(way.algorithm) == name) return &way;
  }
  return nullptr;
}

std::string names_of(std::span<const Way> ways) {
  std::string names;
  for (const Way& way : ways) {
    const std::string_view name = name_of(way.algorithm);
    if (names.find(name) != std::string::npos) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return names;
}

std::string_view trimmed(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

void choose_for_all(Choices& choices, std::string_view name) {
  bool known = false;
  for (const engine::KindRow& row : engine::kKinds) {
    const Way* way = find(row.kind, name);
    if (way == nullptr) continue;
    choices.set(row.kind, way->algorithm);
    known = true;
  }
  if (known) return;
  throw InvalidArgument(fmt::format(
      "HOCKET_ALGORITHM: there is no algorithm \"{}\"; there are {}", name, names_of(kWays)));
}

void choose_for_one(Choices& choices, std::string_view kind_name, std::string_view name) {
  const auto* row = std::ranges::find_if(engine::kKinds, [&](const engine::KindRow& known) {
    return is_carried(known.kind) && known.name == kind_name;
  });
  if (row == engine::kKinds.end()) {
    throw InvalidArgument(
        fmt::format("HOCKET_ALGORITHM: there is no collective \"{}\"", kind_name));
  }
  const Kind kind = row->kind;
  const Way* way = find(kind, name);
  if (way == nullptr) {
    throw InvalidArgument(fmt::format("HOCKET_ALGORITHM: {} has no algorithm \"{}\"; it has {}",
                                      kind_name,
                                      name,
                                      names_of(ways_of(kind))));
  }
  choices.set(kind, way->algorithm);
}

}  // namespace

std::string_view name_of(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::kDissemination:
      return "dissemination";
    case Algorithm::kBinomial:
      return "binomial";
    case Algorithm::kBinaryTree:
      return "binary_tree";
    case Algorithm::kChain:
      return "chain";
    case Algorithm::kScatterRing:
      return "scatter_ring";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kBruck:
      return "bruck";
    case Algorithm::kRecursiveDoubling:
      return "recursive_doubling";
    case Algorithm::kRecursiveHalving:
      return "recursive_halving";
    case Algorithm::kRabenseifner:
      return "rabenseifner";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kLinear:
      return "linear";
    case Algorithm::kPairwise:
      return "pairwise";
    case Algorithm::kGathered:
      return "gathered";
    case Algorithm::kScattered:
      return "scattered";
  }
  return "";
}

std::span<const Way> ways_of(Kind kind) noexcept {
  const auto is = [kind](const Way& way) { return way.kind == kind; };
  const auto* first = std::find_if(kWays.begin(), kWays.end(), is);
  return {first, std::find_if_not(first, kWays.end(), is)};
}

bool order_matters(const engine::Signature& s) noexcept {
  const bool rounds =
      s.op == ReduceOp::kSum || s.op == ReduceOp::kAvg || s.op == ReduceOp::kProduct;
  switch (s.dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return rounds;
    case DType::kBool:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      break;
  }
  return false;
}

Choices Choices::parse(std::string_view text) {
  Choices choices;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view word = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      choose_for_all(choices, word);
    } else {
      choose_for_one(choices, trimmed(word.substr(0, equals)), trimmed(word.substr(equals + 1)));
    }
  }
  return choices;
}

}  // namespace hocket::algorithm

namespace hocket {

std::vector<std::string> algorithm_names(std::string_view collective) {
  std::vector<std::string> names;
  for (const engine::KindRow& row : engine::kKinds) {
    if (row.name != collective) continue;
    for (const algorithm::Way& way : algorithm::ways_of(row.kind)) {
      names.emplace_back(algorithm::name_of(way.algorithm));
    }
  }
  return names;
}

}  // namespace hocket
