// Which engines a job has, out of all that there are.
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

// Makes the providers of a build, all that a job may choose from. `folders`: where Python's
// packages have their libraries.
using MakeProviders = std::function<engine::ProviderList(const std::vector<std::string>& folders)>;
// The same, once they have read their settings. Throws InvalidArgument for a bad one.
engine::ProviderList configured(const MakeProviders& make, const std::vector<std::string>& folders);

// "a,b" as {"a", "b"}.
std::vector<std::string> split_names(const std::string& comma_separated);

// The engines of a job, and who within it carries messages. A value, whose copies share the
// providers; the same on all ranks, but for what the providers know.
class JobEngines {
 public:
  JobEngines() = default;
  // Those asked for, by the options, by HOCKET_ENGINES, or those that a forced algorithm needs; if
  // nobody asks, those that such jobs have by default. Throws InvalidArgument for a wanted one that
  // there is not.
  JobEngines(engine::ProviderList all,
             const InitOptions& options,
             const base::Config& config,
             engine::Ranks ranks);
  // The ranks turn out to be on several hosts: adds what is there for that.
  void span_hosts();

  const engine::ProviderList& chosen() const noexcept { return chosen_; }
  // The same that ranks are told and users see.
  const std::vector<std::string>& names() const noexcept { return names_; }
  // All that there are, whether chosen or not.
  const engine::ProviderList& all() const noexcept { return all_; }

  // What carries messages within a host: of those chosen the one that reaches least far; where one
  // is chosen that has collectives but no messages, what ranks of a host have by default is among
  // these.
  const std::shared_ptr<engine::Provider>& near() const noexcept { return near_; }
  // What carries messages between hosts; null: nothing has to.
  const std::shared_ptr<engine::Provider>& far() const noexcept { return far_; }
  // Whether one carries both.
  bool is_one_carrier() const noexcept { return near_ == far_; }
  // Those that have a part of a group's block, in its order.
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

// Has those that are chosen, other than what carries messages between hosts, tell each other of
// themselves by `store`, which is null where there is one rank. Throws RendezvousError on all ranks
// for what is missing on one.
void introduce_engines(const JobEngines& engines,
                       Store* store,
                       const LaunchInfo& launch,
                       base::Deadline deadline);

}  // namespace hocket::world
