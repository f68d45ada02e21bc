// The entry points of programs: they use all engines of this build.
#include "calls/compose/providers.h"
#include "calls/joining/admission.h"
#include "calls/joining/init.h"
#include "calls/joining/thread_team.h"
#include "foundation/base/config.h"
#include "hocket/bootstrap.h"
#include "hocket/group.h"
#include "hocket/machine.h"

namespace hocket {

World init(const InitOptions& options) { return joining::init(options, compose::make_providers); }

World init(Bootstrap& bootstrap, const InitOptions& options) {
  return joining::init(bootstrap, options, compose::make_providers);
}

World admit(Communicator& members, const AdmitOptions& options) {
  return joining::admit(members, options, compose::make_providers);
}

void run_threads(int size,
                 const std::function<void(Communicator&)>& body,
                 const InitOptions& options) {
  joining::run_threads(size, body, options, compose::make_providers);
}

}  // namespace hocket
