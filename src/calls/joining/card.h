// What each rank of a job tells the others of itself, through the store, before anything else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calls/joining/segment_handover.h"
#include "engine/provider.h"
#include "hocket/store.h"

namespace hocket::joining {

// To be counted up with every change of what ranks say to each other or choose alike: the segment's
// layout, the facts between hosts, what engines write and send.
inline constexpr std::int64_t kWireVersion = 4;

// Whether two ranks can be of one job. A value.
struct Build {
  std::string release;  // "0.1.0"
  std::int64_t wire = kWireVersion;
  std::string tuning;  // a hash; see tuning.h

  bool operator==(const Build&) const = default;
};
// This library's, with these engines.
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
  std::string problem;     // what is wrong with this rank's settings or kernel; empty: nothing
  std::string allotment;   // os::Allotment as text
};

Bytes to_bytes(const Card& card);
// By rank. Throws RendezvousError where ranks are of different builds, naming both, and where one
// is damaged. Of a card of another build nothing else is read.
std::vector<Card> to_cards(const std::vector<Bytes>& cards);

}  // namespace hocket::joining
