// The provider of the engine `local`: messages between ranks that are threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "engine/provider.h"
#include "engines/local/local_point_to_point.h"

namespace hocket::engines::local {

// See engine::Provider.
class LocalProvider final : public engine::Provider {
 public:
  std::string_view name() const noexcept override { return "local"; }
  engine::Use use(engine::Ranks ranks) const noexcept override;
  std::optional<Engine> probe(const Machine& machine) const override;
  engine::Distance reach() const noexcept override { return engine::Distance::kProcess; }
  std::unique_ptr<engine::PointToPoint> make_messages(const engine::GroupSite& site) override;

 private:
  std::mutex mutex_;
  // Keys are the groups' blocks. A fabric lives as long as a thread uses it.
  std::map<const std::byte*, std::weak_ptr<LocalFabric>> fabrics_;
};

}  // namespace hocket::engines::local
