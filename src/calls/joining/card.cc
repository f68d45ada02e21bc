#include "calls/joining/card.h"

#include <fmt/format.h>

#include <algorithm>

#include "calls/joining/tuning.h"
#include "hocket/error.h"
#include "hocket/object.h"

namespace hocket::joining {
namespace {

constexpr std::size_t kBuildEntries = 3;  // these entries come first in every release
constexpr std::size_t kEntries = kBuildEntries + 9;

bool is_text(const Object& object) { return object.kind() == ObjectKind::kString; }

// Reads the build of a card of any release; unknown if the card has another form.
Build build_of(const Object& card) {
  const Build unknown{.release = "of an unknown release", .wire = 0, .tuning = {}};
  if (card.kind() != ObjectKind::kList || card.items().size() < kBuildEntries) return unknown;
  const bool is_known = is_text(card[0]) && card[1].kind() == ObjectKind::kInteger &&
                        card[1].fits_int64() && is_text(card[2]);
  if (!is_known) return unknown;
  return {
      .release = card[0].as_string(), .wire = card[1].as_integer(), .tuning = card[2].as_string()};
}

std::string describe(const Build& build) {
  return fmt::format("hocket {} (wire {}{})",
                     build.release,
                     build.wire,
                     build.tuning.empty() ? "" : ", tuning " + build.tuning);
}

Card to_card(const Object& object, Build build) {
  const auto is_sound = [&] {
    if (object.items().size() != kEntries) return false;
    for (std::size_t i = kBuildEntries; i < kEntries; ++i) {
      const bool is_token = i == kBuildEntries + 4;
      if (object[i].kind() != (is_token ? ObjectKind::kBytes : ObjectKind::kString)) return false;
    }
    return object[kBuildEntries + 4].as_bytes().size() == JobToken{}.size();
  };
  if (!is_sound()) throw RendezvousError("a rank's card at the store is damaged");
  const auto text = [&](std::size_t at) { return object[kBuildEntries + at].as_string(); };
  Card card{.build = std::move(build),
            .host = text(0),
            .host_name = text(1),
            .machine = text(2),
            .listener = text(3),
            .engines = text(5),
            .algorithms = text(6),
            .problem = text(7),
            .allotment = text(8)};
  std::ranges::copy(object[kBuildEntries + 4].as_bytes(), card.token.begin());
  return card;
}

}  // namespace

Build own_build(const engine::ProviderList& providers) {
  return {.release = HOCKET_VERSION, .tuning = fmt::format("{:016x}", tuning_hash(providers))};
}

Bytes to_bytes(const Card& card) {
  return encode(Object::list({card.build.release,
                              card.build.wire,
                              card.build.tuning,
                              card.host,
                              card.host_name,
                              card.machine,
                              card.listener,
                              Object::bytes(std::span<const std::byte>(card.token)),
                              card.engines,
                              card.algorithms,
                              card.problem,
                              card.allotment}));
}

std::vector<Card> to_cards(const std::vector<Bytes>& cards) {
  std::vector<Object> objects;
  std::vector<Build> builds;
  for (const Bytes& bytes : cards) {
    objects.push_back(decode(bytes));
    builds.push_back(build_of(objects.back()));
  }
  for (std::size_t i = 1; i < builds.size(); ++i) {
    if (builds[i] == builds[0]) continue;
    const bool same_release = builds[i].release == builds[0].release;
    throw RendezvousError(fmt::format(
        "rank 0 is of {} and rank {} of {}; {}",
        describe(builds[0]),
        i,
        describe(builds[i]),
        same_release ? "one of them was built from other sources or for another processor: give "
                       "all ranks the same build"
                     : "install the same release for all ranks"));
  }
  std::vector<Card> made;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    made.push_back(to_card(objects[i], std::move(builds[i])));
  }
  return made;
}

}  // namespace hocket::joining
