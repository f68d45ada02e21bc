// From a process that was just started to a world, with engines out of a list that is handed in.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "calls/world/job_engines.h"
#include "foundation/base/config.h"
#include "hocket/bootstrap.h"
#include "hocket/group.h"

namespace hocket::joining {

// As hocket::init.
World init(const InitOptions& options, const world::MakeProviders& make);
World init(Bootstrap& bootstrap, const InitOptions& options, const world::MakeProviders& make);

// The settings that a rank needs before it meets the others. A value.
struct StartSettings {
  base::Config config;
  engine::ProviderList providers;
};
// Throws InvalidArgument.
StartSettings read_settings(const InitOptions& options, const world::MakeProviders& make);

// Holds what this process serves to the others. A resource.
struct Hosting {
  std::optional<StoreServer> server = {};  // of the store where they meet
  std::shared_ptr<void> door = {};         // see WorldParts::door
};
// Joins the job that `launch` describes. An error that ends this rank's part ends the others', too,
// with its reason. Waits call `look` now and then, whose exception ends them.
World join(
    const InitOptions& options,
    const StartSettings& settings,
    LaunchInfo launch,
    Hosting hosting = {},
    const std::function<void()>& look = [] {});

}  // namespace hocket::joining
