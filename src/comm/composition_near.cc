#include "comm/composition_near.h"

#include <utility>

#include "algorithm/hierarchy_engine.h"
#include "engines/shm/shm_engine.h"
#include "engines/shm/shm_point_to_point.h"

namespace hocket::comm {

using control::GroupControl;
using engines::shm::ShmEngine;
using engines::shm::ShmGroup;
using engines::shm::ShmPointToPoint;

namespace {

// Of the mates' memory: their control part, their chunks, their channels.
std::size_t chunks_offset(int mates) { return round_to_part(GroupControl::bytes(mates)); }
std::size_t channels_offset(int mates) {
  return chunks_offset(mates) + round_to_part(ShmGroup::bytes(mates));
}

// A resource, shared by what works among the mates.
struct Shared {
  Shared(control::HostControl& host, std::byte* memory, int own, std::vector<int> their_places)
      : places(std::move(their_places)), control(host, memory, own, places) {}
  const std::vector<int> places;
  GroupControl control;
};

// Messages between them.
class NearMessages final : public engine::PointToPoint {
 public:
  NearMessages(std::shared_ptr<Shared> shared, std::byte* channels)
      : shared_(std::move(shared)), messages_(shared_->control, channels) {}
  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override {
    return messages_.send(to, bytes);
  }
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override {
    return messages_.recv(from, bytes);
  }
  bool test(engine::MessageId message, engine::Envelope* received) override {
    return messages_.test(message, received);
  }
  bool progress() override { return messages_.progress(); }
  void cancel(engine::MessageId message) noexcept override { messages_.cancel(message); }
  std::optional<int> waiting(engine::Tag tag) override { return messages_.waiting(tag); }

 private:
  const std::shared_ptr<Shared> shared_;
  ShmPointToPoint messages_;
};

// Collectives among them, as parts of those of the whole group. What each rank has called is
// compared where their parts meet.
class NearEngine final : public engine::CollectiveEngine, private engine::Consistency {
 public:
  // `members`: the number in the whole group of each.
  NearEngine(std::shared_ptr<Shared> shared,
             std::byte* memory,
             engine::Consistency& whole,
             std::vector<int> members)
      : shared_(std::move(shared)),
        whole_(whole),
        members_(std::move(members)),
        engine_(shared_->control,
                *this,
                memory,
                {.rank = shared_->control.rank(), .size = shared_->control.size(), .hosts = {}}) {}
  std::string_view name() const noexcept override { return engine_.name(); }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override {
    return engine_.score(signature);
  }
  engine::Task start(const engine::Call& call) override { return engine_.start(call); }
  bool attempt(const engine::Call& call) override { return engine_.attempt(call); }
  void skip(std::uint64_t sequence) override { engine_.skip(sequence); }

 private:
  void confirm(int peer, std::uint64_t part) override {
    whole_.confirm(members_[static_cast<std::size_t>(peer)],
                   algorithm::HierarchyEngine::call_of(part));
  }

  const std::shared_ptr<Shared> shared_;
  engine::Consistency& whole_;
  const std::vector<int> members_;
  ShmEngine engine_;
};

}  // namespace

Mates mates_of(const call::Membership& membership) {
  Mates mates;
  const auto& hosts = membership.hosts;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool near = hosts[i] == hosts[static_cast<std::size_t>(membership.rank)];
    mates.numbers.push_back(near ? mates.size() : -1);
    if (!near) continue;
    mates.members.push_back(static_cast<int>(i));
    mates.places.push_back(membership.host_ranks[i]);
  }
  mates.own = mates.numbers[static_cast<std::size_t>(membership.rank)];
  return mates;
}

Near make_near(control::HostControl& host,
               const Mates& mates,
               std::byte* memory,
               engine::Consistency& whole) {
  const auto shared = std::make_shared<Shared>(host, memory, mates.own, mates.places);
  return {
      .messages = std::make_unique<NearMessages>(shared, memory + channels_offset(mates.size())),
      .collectives = std::make_unique<NearEngine>(
          shared, memory + chunks_offset(mates.size()), whole, mates.members)};
}

std::size_t near_bytes(int mates) { return channels_offset(mates) + ShmPointToPoint::bytes(mates); }

void format_near(std::byte* memory, int mates) {
  GroupControl::format(memory, std::vector<int>(static_cast<std::size_t>(mates)));
}

}  // namespace hocket::comm
