#include "calls/world/near_engines.h"

#include <utility>

#include "engines/algorithm/hierarchy_engine.h"

namespace hocket::world {

using control::GroupControl;

namespace {

// The state that this host's messages and collectives share. A resource.
struct Shared {
  Shared(control::HostControl& host, std::byte* memory, const LocalMembers& local)
      : places(local.places),
        hosts(local.places.size()),
        control(host, memory, local.own, places) {}
  const std::vector<int> places;
  const std::vector<int> hosts;  // all 0: one host
  GroupControl control;
};

// Messages between members on this host. It keeps the shared state alive.
class NearMessages final : public engine::PointToPoint {
 public:
  NearMessages(std::shared_ptr<Shared> shared, std::unique_ptr<engine::PointToPoint> messages)
      : shared_(std::move(shared)), messages_(std::move(messages)) {}
  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override {
    return messages_->send(to, bytes);
  }
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override {
    return messages_->recv(from, bytes);
  }
  bool recv_soon(const engine::Envelope& from,
                 std::span<std::byte> bytes,
                 int& polls,
                 engine::Envelope& received) override {
    return messages_->recv_soon(from, bytes, polls, received);
  }
  bool test(engine::MessageId message, engine::Envelope* received) override {
    return messages_->test(message, received);
  }
  bool progress() override { return messages_->progress(); }
  void cancel(engine::MessageId message) noexcept override { messages_->cancel(message); }
  bool withdraw(engine::MessageId message) noexcept override {
    return messages_->withdraw(message);
  }
  std::optional<engine::Envelope> waiting(const engine::Envelope& wanted) override {
    return messages_->waiting(wanted);
  }

 private:
  const std::shared_ptr<Shared> shared_;
  std::unique_ptr<engine::PointToPoint> messages_;
};

// Collectives among this host's members, as parts of the whole group's calls. If fingerprints
// differ here, the records of the whole group decide; see `confirm`.
class NearEngine final : public engine::CollectiveEngine, private engine::Consistency {
 public:
  // `site` describes this host's members; `members` has the number of each in the whole group.
  NearEngine(std::shared_ptr<Shared> shared,
             engine::Provider& provider,
             engine::GroupSite site,
             engine::Consistency& whole,
             std::vector<int> members)
      : shared_(std::move(shared)), whole_(whole), members_(std::move(members)) {
    site.consistency = this;
    engine_ = provider.make_collectives(site);
  }
  std::string_view name() const noexcept override { return engine_->name(); }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override {
    return engine_->score(signature);
  }
  engine::Task start(const engine::Call& call) override { return engine_->start(call); }
  bool attempt(const engine::Call& call) override { return engine_->attempt(call); }
  void skip(std::uint64_t sequence) override { engine_->skip(sequence); }

 private:
  void confirm(int peer, std::uint64_t part) override {
    whole_.confirm(members_[static_cast<std::size_t>(peer)],
                   algorithm::HierarchyEngine::call_of(part));
  }

  const std::shared_ptr<Shared> shared_;
  engine::Consistency& whole_;
  const std::vector<int> members_;
  std::unique_ptr<engine::CollectiveEngine> engine_;
};

}  // namespace

LocalMembers local_members_of(const call::Membership& membership) {
  LocalMembers local;
  const auto& hosts = membership.hosts;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool near = hosts[i] == hosts[static_cast<std::size_t>(membership.rank)];
    local.numbers.push_back(near ? local.size() : -1);
    if (!near) continue;
    local.members.push_back(static_cast<int>(i));
    local.places.push_back(membership.host_ranks[i]);
  }
  local.own = local.numbers[static_cast<std::size_t>(membership.rank)];
  return local;
}

Near make_near(control::HostControl& host,
               engine::Provider& provider,
               const engine::GroupSite& whole,
               const LocalMembers& local,
               std::byte* control,
               std::byte* memory) {
  const auto shared = std::make_shared<Shared>(host, control, local);
  engine::GroupSite site = whole;
  site.facts = {.rank = local.own, .size = local.size(), .hosts = shared->hosts};
  site.memory = memory;
  site.control = &shared->control;
  site.ring = [shared](int member) { shared->control.ring(member); };
  Near near;
  near.messages = std::make_unique<NearMessages>(shared, provider.make_messages(site));
  if (provider.has_collectives()) {
    near.collectives = std::make_unique<NearEngine>(
        shared, provider, std::move(site), *whole.consistency, local.members);
  }
  return near;
}

}  // namespace hocket::world
