// The card by which each rank introduces itself to the others, through the store, before anything
// else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calls/joining/segment_handover.h"
#include "engine/provider.h"
#include "hocket/store.h"

namespace hocket::joining {

// Increase it with every change of formats that ranks exchange or choices that they must make
// alike. These are the segment's layout, the facts between hosts, and the engines' formats.
inline constexpr std::int64_t kWireVersion = 4;

// The build of a rank's library; ranks of one job must have equal ones. A value.
struct Build {
  std::string release;  // "0.1.0"
  std::int64_t wire = kWireVersion;
  std::string tuning;  // a hash; see tuning.h

  bool operator==(const Build&) const = default;
};
// This library's build, with these engines.
Build own_build(const engine::ProviderList& providers);

// A value.
struct Card {
  Build build;
  std::string host;       // identity
  std::string host_name;  // for people
  std::string machine;
  std::string listener;  // abstract AF_UNIX name
  JobToken token{};
  std::string engines;     // names with commas
  std::string algorithms;  // HOCKET_ALGORITHM
  std::string problem;     // the error in this rank's settings or kernel; empty: none
  std::string allotment;   // os::Allotment as text
};

Bytes to_bytes(const Card& card);
// The cards by rank. Throws RendezvousError if ranks have different builds, naming both, or if a
// card is damaged. Nothing else is read from a card of another build.
std::vector<Card> to_cards(const std::vector<Bytes>& cards);

}  // namespace hocket::joining
