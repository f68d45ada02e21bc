// Joins a job: from a process that was just started to a world.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "calls/world/job_engines.h"
#include "foundation/base/config.h"
#include "hocket/bootstrap.h"
#include "hocket/group.h"

namespace hocket::joining {

// Does the work of hocket::init, with the engines that `make` returns.
World init(const InitOptions& options, const world::MakeProviders& make);
World init(Bootstrap& bootstrap, const InitOptions& options, const world::MakeProviders& make);

// The settings that a rank needs before it meets the other ranks. A value.
struct StartSettings {
  base::Config config;
  engine::ProviderList providers;
};
// Reads the settings from the options and the environment. Throws InvalidArgument.
StartSettings read_settings(const InitOptions& options, const world::MakeProviders& make);

// The services of this process for other ranks. A resource.
struct Hosting {
  std::optional<StoreServer> server = {};  // the server of the store where they meet
  std::shared_ptr<void> door = {};         // see WorldParts::door
};
// Joins the job that `launch` describes. If this fails, the other ranks fail with the same reason.
// The waits in it call `look` from time to time; an exception from `look` ends the wait.
World join(
    const InitOptions& options,
    const StartSettings& settings,
    LaunchInfo launch,
    Hosting hosting = {},
    const std::function<void()>& look = [] {});

}  // namespace hocket::joining
