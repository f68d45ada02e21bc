// The engine mail, as a job knows it. It follows docs/adding-an-engine.md step by step, and shows
// that these are all the steps. Its messages go between threads. Messages of GPUs' arrays need
// memory that the host can address.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "engine/provider.h"
#include "fake_engine/mail_messages.h"

namespace hocket::engines::mail {

// See engine::Provider.
class MailProvider final : public engine::Provider {
 public:
  std::string_view name() const noexcept override { return "mail"; }
  engine::Use use(engine::Ranks ranks) const noexcept override;
  bool serves(MemoryKind) const noexcept override { return true; }
  std::span<const base::SettingRow> settings() const noexcept override;
  void configure() override;  // HOCKET_TEST_MAIL_GPUS
  std::optional<Engine> probe(const Machine& machine) const override;

  engine::Distance reach() const noexcept override { return engine::Distance::kProcess; }
  std::unique_ptr<engine::PointToPoint> make_messages(const engine::GroupSite& site) override;

  engine::DeviceCard device_card(const cuda::DeviceContext& device) override;
  std::string why_no_device_engine(const engine::DeviceSite& site) const override;
  std::unique_ptr<engine::DeviceEngine> make_device_engine(const engine::DeviceSite& site) override;

  // Groups that it has made engines for, in host memory and in GPUs'.
  int groups() const noexcept { return groups_; }
  int device_groups() const noexcept { return device_groups_; }

 private:
  template <typename Key>
  using Offices = std::map<Key, std::weak_ptr<PostOffice>>;
  template <typename Key>
  std::shared_ptr<PostOffice> office(Offices<Key>& offices, Key key, int size);

  bool gpus_ = false;
  std::atomic<int> groups_{0};
  std::atomic<int> device_groups_{0};
  std::mutex mutex_;
  Offices<const std::byte*> offices_;      // by the group's block
  Offices<std::uint64_t> device_offices_;  // by the group's number
};

}  // namespace hocket::engines::mail
