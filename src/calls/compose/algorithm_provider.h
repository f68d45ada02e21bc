// The provider of the engine `algorithm`: collectives over any messages. Users request it to avoid
// an engine's own collectives.
#pragma once

#include "engine/provider.h"

namespace hocket::compose {

// See engine::Provider.
class AlgorithmProvider final : public engine::Provider {
 public:
  std::string_view name() const noexcept override { return "algorithm"; }
  engine::Use use(engine::Ranks) const noexcept override { return engine::Use::kWhenAsked; }
  std::optional<Engine> probe(const Machine& machine) const override;
};

}  // namespace hocket::compose
