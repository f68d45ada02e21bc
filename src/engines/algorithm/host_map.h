// The assignment of ranks to hosts, and the division of arrays among the hosts. All ranks compute
// the same from facts that all ranks know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engines/algorithm/ranges.h"

namespace hocket::algorithm {

// The hosts of all ranks. Hosts are numbered in the order of their first ranks. The ranks of a host
// have local numbers from 0, in rank order. A value.
class HostMap {
 public:
  // hosts[i] identifies the host of rank i. Any numbers may be used.
  explicit HostMap(std::span<const int> hosts) {
    std::unordered_map<int, std::size_t> known;
    host_of_.reserve(hosts.size());
    local_.reserve(hosts.size());
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      const auto [found, is_new] = known.try_emplace(hosts[rank], members_.size());
      const std::size_t host = found->second;
      if (is_new) members_.emplace_back();
      host_of_.push_back(static_cast<int>(host));
      local_.push_back(static_cast<int>(members_[host].size()));
      members_[host].push_back(static_cast<int>(rank));
    }
  }

  int ranks() const noexcept { return static_cast<int>(host_of_.size()); }
  int hosts() const noexcept { return static_cast<int>(members_.size()); }
  int host_of(int rank) const noexcept { return host_of_[static_cast<std::size_t>(rank)]; }
  int local(int rank) const noexcept { return local_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& members(int host) const noexcept {
    return members_[static_cast<std::size_t>(host)];
  }
  // Returns the number of ranks of the smallest host. This is also the largest possible number of
  // lanes, because a lane has one rank of every host; see hierarchy_engine.h.
  int fewest() const noexcept { return extreme(false); }
  int most() const noexcept { return extreme(true); }
  bool is_even() const noexcept { return fewest() == most(); }
  // Returns whether the ranks of every host are consecutive.
  bool is_in_order() const noexcept { return std::is_sorted(host_of_.begin(), host_of_.end()); }
  // Counts for each host its ranks whose successor in the ring of all ranks is on another host.
  // Returns the maximum over all hosts.
  int most_crossings() const {
    std::vector<int> crossings(members_.size());
    for (std::size_t rank = 0; rank < host_of_.size(); ++rank) {
      const int next = host_of_[(rank + 1) % host_of_.size()];
      if (next != host_of_[rank]) ++crossings[static_cast<std::size_t>(host_of_[rank])];
    }
    return *std::max_element(crossings.begin(), crossings.end());
  }
  // Returns the ranks of lane `number`, one for each host, in the order of the hosts.
  std::vector<int> lane(int number) const {
    std::vector<int> ranks;
    for (const auto& host : members_) ranks.push_back(host[static_cast<std::size_t>(number)]);
    return ranks;
  }

 private:
  int extreme(bool most) const noexcept {
    std::size_t found = members_.front().size();
    for (const auto& host : members_) {
      found = most ? std::max(found, host.size()) : std::min(found, host.size());
    }
    return static_cast<int>(found);
  }

  std::vector<int> host_of_;
  std::vector<int> local_;
  std::vector<std::vector<int>> members_;
};

// The size of each rank's part: one number if all parts are equal, otherwise a list. A value.
class RankParts {
 public:
  explicit RankParts(std::size_t each) : each_(each) {}
  explicit RankParts(std::vector<std::size_t> parts) : parts_(std::move(parts)) {}
  std::size_t of(int rank) const noexcept {
    return parts_.empty() ? each_ : parts_[static_cast<std::size_t>(rank)];
  }

 private:
  std::size_t each_ = 0;
  std::vector<std::size_t> parts_;
};

// The parts of all ranks, arranged by host. The parts of a host's ranks form one *block*, in local
// order. Each block is divided equally into *pieces*, one for each lane. Lengths have the unit of
// `parts`. A value; the map must outlive it.
//
//   block of host 0   | part r0  | part r1  | part r2  |
//                     | piece of lane 0 | piece of lane 1 |
//   block of host 1   | part r3  | part r4  |
//                     | lane 0  |  lane 1   |
class HostBlocks {
 public:
  HostBlocks(const HostMap& map, RankParts parts, int lanes)
      : map_(&map), parts_(std::move(parts)), lanes_(lanes) {
    for (int host = 0; host < map.hosts(); ++host) {
      std::size_t length = 0;
      for (const int rank : map.members(host)) length += part(rank);
      blocks_.push_back(length);
    }
  }

  std::size_t part(int rank) const noexcept { return parts_.of(rank); }
  std::size_t block(int host) const noexcept { return blocks_[static_cast<std::size_t>(host)]; }
  // Returns the position of a rank's part in its host's block.
  std::size_t in_block(int rank) const noexcept {
    std::size_t at = 0;
    for (const int other : map_->members(map_->host_of(rank))) {
      if (other == rank) break;
      at += part(other);
    }
    return at;
  }
  // Returns a lane's piece of a host's block, as a range of the block.
  Range piece_of(int host, int lane) const noexcept { return even_part(block(host), lanes_, lane); }
  // Returns the total length of the pieces of a lane. In the lane's memory they lie one after the
  // other, in the order of the hosts.
  std::size_t lane_length(int lane) const noexcept {
    std::size_t length = 0;
    for (int host = 0; host < map_->hosts(); ++host) length += piece_of(host, lane).length;
    return length;
  }
  // Calls `copy(rank, at, lane, place, length)` for each overlap of a rank's part with a lane's
  // piece. `at` is the position in the part of the rank. `place` is the position in the memory of
  // the lane's pieces.
  template <typename Copy>
  void for_each_overlap(const Copy& copy) const {
    for (int lane = 0; lane < lanes_; ++lane) {
      std::size_t place = 0;  // position of the host's piece in the memory of the lane
      for (int host = 0; host < map_->hosts(); ++host) {
        const Range piece = piece_of(host, lane);
        std::size_t begin = 0;
        for (const int rank : map_->members(host)) {
          const std::size_t end = begin + part(rank);
          const std::size_t first = std::max(begin, piece.first);
          const std::size_t last = std::min(end, piece.end());
          if (first < last) {
            copy(rank, first - begin, lane, place + (first - piece.first), last - first);
          }
          begin = end;
        }
        place += piece.length;
      }
    }
  }

 private:
  const HostMap* map_;
  RankParts parts_;
  std::vector<std::size_t> blocks_;
  int lanes_;
};

}  // namespace hocket::algorithm
