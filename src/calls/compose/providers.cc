#include "calls/compose/providers.h"

#include "calls/compose/algorithm_provider.h"
#include "engines/local/provider.h"
#include "engines/mpi/provider.h"
#include "engines/nccl/provider.h"
#include "engines/peer/provider.h"
#include "engines/shm/provider.h"
#include "engines/ucx/provider.h"

namespace hocket::compose {

engine::ProviderList make_providers(const std::vector<std::string>& folders) {
  return {
      std::make_shared<engines::shm::ShmProvider>(),
      std::make_shared<engines::local::LocalProvider>(),
      std::make_shared<AlgorithmProvider>(),
      std::make_shared<engines::peer::PeerProvider>(),
      std::make_shared<engines::nccl::NcclProvider>(folders),
      std::make_shared<engines::ucx::UcxProvider>(folders),
      std::make_shared<engines::mpi::MpiProvider>(),
  };
}

}  // namespace hocket::compose
