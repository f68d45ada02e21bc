// The composition root: the only file that names engines.
#pragma once

#include <string>
#include <vector>

#include "engine/provider.h"

namespace hocket::compose {

// Returns the providers of all engines of this build, best first. See world::MakeProviders.
engine::ProviderList make_providers(const std::vector<std::string>& folders);

}  // namespace hocket::compose
