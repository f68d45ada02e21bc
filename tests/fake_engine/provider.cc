#include "fake_engine/provider.h"

#include <algorithm>

#include "engines/movement/moving_engine.h"
#include "foundation/base/config.h"
#include "foundation/cuda/context.h"

namespace hocket::engines::mail {
namespace {

constexpr base::SettingRow kRows[]{
    {"HOCKET_TEST_MAIL_GPUS", "1: GPUs' arrays by mail; default 0"},
};

// The fact that a rank exchanges: whether its GPU's arrays may go by mail.
struct Card {
  std::int32_t reached = 0;
};

// Moves GPUs' arrays by messages, like arrays of the host.
class MailDeviceEngine final : public movement::MovingEngine {
 public:
  MailDeviceEngine(const engine::DeviceSite& site, std::unique_ptr<engine::PointToPoint> messages)
      : MovingEngine(site.device,
                     {.library = "mail",
                      .rank = site.facts.rank,
                      .size = site.facts.size,
                      .always = true,
                      .interrupted = site.interrupted}),
        made_(std::move(messages)) {}
  std::string_view name() const noexcept override { return "mail"; }

 private:
  void prepare() override {}
  std::string meet(const engine::Introduction&) override { return {}; }
  std::unique_ptr<engine::PointToPoint> make_messages(
      const std::shared_ptr<movement::Slots>&) override {
    return std::move(made_);
  }
  bool is_broken(int) noexcept override { return false; }

  std::unique_ptr<engine::PointToPoint> made_;
};

}  // namespace

engine::Use MailProvider::use(engine::Ranks ranks) const noexcept {
  return ranks == engine::Ranks::kThreads ? engine::Use::kWhenAsked : engine::Use::kNever;
}

std::span<const base::SettingRow> MailProvider::settings() const noexcept { return kRows; }

void MailProvider::configure() { gpus_ = base::environment_switch("HOCKET_TEST_MAIL_GPUS"); }

std::optional<Engine> MailProvider::probe(const Machine&) const {
  return Engine{std::string(name()), true, "ranks that are threads, when asked for"};
}

template <typename Key>
std::shared_ptr<PostOffice> MailProvider::office(Offices<Key>& offices, Key key, int size) {
  const std::lock_guard lock(mutex_);
  std::erase_if(offices, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = offices[key];
  auto office = entry.lock();
  if (!office) entry = office = std::make_shared<PostOffice>(size);
  return office;
}

std::unique_ptr<engine::PointToPoint> MailProvider::make_messages(const engine::GroupSite& site) {
  ++groups_;
  const std::byte* block = site.block;
  return std::make_unique<MailMessages>(
      office(offices_, block, site.facts.size), site.facts.rank, site.ring);
}

engine::DeviceCard MailProvider::device_card(const cuda::DeviceContext& device) {
  static_cast<void>(device);
  return engine::DeviceCard::of(Card{.reached = gpus_ ? 1 : 0});
}

std::string MailProvider::why_no_device_engine(const engine::DeviceSite& site) const {
  const bool all = std::ranges::all_of(
      site.cards, [](const engine::DeviceCard& card) { return card.as<Card>().reached != 0; });
  return all ? "" : "the host does not reach a GPU's memory";
}

std::unique_ptr<engine::DeviceEngine> MailProvider::make_device_engine(
    const engine::DeviceSite& site) {
  ++device_groups_;
  auto messages = std::make_unique<MailMessages>(
      office(device_offices_, site.id, site.facts.size), site.facts.rank, [](int) {});
  return std::make_unique<MailDeviceEngine>(site, std::move(messages));
}

}  // namespace hocket::engines::mail
