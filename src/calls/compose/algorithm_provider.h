// The engine algorithm, as a job knows it: the collectives that are made of any messages, to be
// asked for where those of an engine's own are not wanted.
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
