// The card by which each rank introduces itself to the other ranks, through the store, before
// anything else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calls/joining/segment_handover.h"
#include "engine/provider.h"
#include "hocket/store.h"

namespace hocket::joining {

// Increase it with every change of a format that ranks exchange: the segment's layout, the facts
// between hosts, the engines' formats. Increase it also if ranks change a choice that must be alike
// on all.
inline constexpr std::int64_t kWireVersion = 4;

// The build of a rank's library. Ranks of one job must have equal builds. A value.
struct Build {
  std::string release;  // "0.1.0"
  std::int64_t wire = kWireVersion;
  std::string tuning;  // a hash; see tuning.h

  bool operator==(const Build&) const = default;
};
// Returns the build of this library with the engines of `providers`.
Build own_build(const engine::ProviderList& providers);

// The facts that a rank tells the other ranks. A value.
struct Card {
  Build build;
  std::string host;       // identity of the host
  std::string host_name;  // name of the host, for people
  std::string machine;
  std::string listener;  // abstract AF_UNIX name
  JobToken token{};
  std::string engines;     // names with commas
  std::string algorithms;  // HOCKET_ALGORITHM
  std::string problem;     // the error in this rank's settings or kernel; empty: none
  std::string allotment;   // os::Allotment as text
};

Bytes to_bytes(const Card& card);
// Decodes the cards of all ranks. Throws RendezvousError if ranks have different builds, naming
// both, or if a card is damaged. Nothing but the build is read from a card of another build.
std::vector<Card> to_cards(const std::vector<Bytes>& cards);

}  // namespace hocket::joining
