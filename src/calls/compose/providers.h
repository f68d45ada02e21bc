// The composition root: the one place that names engines.
#pragma once

#include <string>
#include <vector>

#include "engine/provider.h"

namespace hocket::compose {

// All engines of this build, the best first. See world::MakeProviders.
engine::ProviderList make_providers(const std::vector<std::string>& folders);

}  // namespace hocket::compose
