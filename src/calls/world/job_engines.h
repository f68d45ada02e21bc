// The engines of a job, chosen from all that exist.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/provider.h"
#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "hocket/group.h"
#include "hocket/launch.h"
#include "hocket/store.h"

namespace hocket::world {

// Makes the providers of a build, from which a job may choose. `folders` are the library folders of
// Python's packages.
using MakeProviders = std::function<engine::ProviderList(const std::vector<std::string>& folders)>;
// Makes the providers, and lets them read their settings. Throws InvalidArgument for a wrong
// setting.
engine::ProviderList configured(const MakeProviders& make, const std::vector<std::string>& folders);

// Splits "a,b" into {"a", "b"}.
std::vector<std::string> split_names(const std::string& comma_separated);

// The engines of a job, and the carriers of messages among them. Equal on all ranks, except for
// data inside the providers. A value; its copies share the providers.
class JobEngines {
 public:
  JobEngines() = default;
  // Chooses the engines that the options, HOCKET_ENGINES or a forced algorithm name; else the
  // defaults. Throws InvalidArgument if a named engine does not exist.
  JobEngines(engine::ProviderList all,
             const InitOptions& options,
             const base::Config& config,
             engine::Ranks ranks);
  // Adds the engine between hosts. Call it if the ranks are on several hosts.
  void span_hosts();

  const engine::ProviderList& chosen() const noexcept { return chosen_; }
  // The names of the chosen engines, as ranks exchange them and users see them.
  const std::vector<std::string>& names() const noexcept { return names_; }
  // All engines, whether chosen or not.
  const engine::ProviderList& all() const noexcept { return all_; }

  // The carrier of messages within a host: the chosen engine with the shortest reach. If a chosen
  // engine has collectives but no messages, the default engine for ranks of a host is a candidate,
  // too.
  const std::shared_ptr<engine::Provider>& near() const noexcept { return near_; }
  // The carrier of messages between hosts; null: none is needed.
  const std::shared_ptr<engine::Provider>& far() const noexcept { return far_; }
  // True if one engine carries messages both within and between hosts.
  bool is_one_carrier() const noexcept { return near_ == far_; }
  // The engines that have a part of a group's block, in the order of the parts.
  engine::ProviderList with_memory() const;

 private:
  void choose(const std::vector<std::string>& wanted, engine::Ranks ranks);
  void find_carriers();
  bool is_chosen(const engine::Provider& provider) const noexcept;

  engine::ProviderList all_;
  engine::ProviderList chosen_;
  std::vector<std::string> names_;
  bool asked_ = false;
  bool spans_ = false;
  std::shared_ptr<engine::Provider> near_;
  std::shared_ptr<engine::Provider> far_;
};

// Exchanges the chosen engines' cards through `store`, which is null if there is one rank. Leaves
// out the carrier between hosts. If one rank lacks an engine, all ranks throw RendezvousError.
void introduce_engines(const JobEngines& engines,
                       Store* store,
                       const LaunchInfo& launch,
                       base::Deadline deadline);

}  // namespace hocket::world
