// src/engines/nvshmem/abi.h against NVSHMEM's own headers.
#include <nvshmem_host.h>

#include <cstddef>
#include <type_traits>

#include "engines/nvshmem/library.h"

namespace ours = hocket::nvshmem;

template <typename A, typename B>
constexpr bool equal(A ours, B theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}

static_assert(equal(ours::NvshmemStatus::kNotInitialized, NVSHMEM_STATUS_NOT_INITIALIZED));
static_assert(equal(ours::NvshmemStatus::kBootstrapped, NVSHMEM_STATUS_IS_BOOTSTRAPPED));
static_assert(equal(ours::NvshmemStatus::kInitialized, NVSHMEM_STATUS_IS_INITIALIZED));
static_assert(equal(ours::NvshmemStatus::kLimitedSharing, NVSHMEM_STATUS_LIMITED_MPG));
static_assert(equal(ours::NvshmemStatus::kFullSharing, NVSHMEM_STATUS_FULL_MPG));
static_assert(equal(ours::kWithUniqueId, NVSHMEMX_INIT_WITH_UNIQUEID));
static_assert(equal(ours::kWorldTeam, NVSHMEM_TEAM_WORLD));
static_assert(equal(ours::kInvalidTeam, NVSHMEM_TEAM_INVALID));
static_assert(std::is_same_v<ours::Team, nvshmem_team_t>);

static_assert(sizeof(ours::UniqueId) == sizeof(nvshmemx_uniqueid_v1));
static_assert(offsetof(ours::UniqueId, internal) == offsetof(nvshmemx_uniqueid_v1, internal));

static_assert(sizeof(ours::UniqueIdArguments) == sizeof(nvshmemx_uniqueid_args_v1));
static_assert(offsetof(ours::UniqueIdArguments, id) == offsetof(nvshmemx_uniqueid_args_v1, id));
static_assert(offsetof(ours::UniqueIdArguments, rank) ==
              offsetof(nvshmemx_uniqueid_args_v1, myrank));
static_assert(offsetof(ours::UniqueIdArguments, ranks) ==
              offsetof(nvshmemx_uniqueid_args_v1, nranks));

static_assert(sizeof(ours::InitArguments) == sizeof(nvshmemx_init_args_v1));
static_assert(offsetof(ours::InitArguments, unique_id) ==
              offsetof(nvshmemx_init_args_v1, uid_args));
static_assert(sizeof(ours::InitAttributes) == sizeof(nvshmemx_init_attr_v1));
static_assert(offsetof(ours::InitAttributes, mpi_comm) ==
              offsetof(nvshmemx_init_attr_v1, mpi_comm));
static_assert(offsetof(ours::InitAttributes, arguments) == offsetof(nvshmemx_init_attr_v1, args));

#ifdef NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID  // from 3.3 on
static_assert(std::is_same_v<ours::TeamId, nvshmemx_team_uniqueid_t>);
static_assert(ours::kMaskTeamId == NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID);
static_assert(sizeof(ours::TeamConfig) == sizeof(nvshmem_team_config_v2));
static_assert(offsetof(ours::TeamConfig, contexts) ==
              offsetof(nvshmem_team_config_v2, num_contexts));
static_assert(offsetof(ours::TeamConfig, id) == offsetof(nvshmem_team_config_v2, uniqueid));
static_assert(std::is_same_v<decltype(nvshmemx_team_init),
                             int(nvshmem_team_t*, nvshmem_team_config_t*, long, int, int)>);
static_assert(std::is_same_v<decltype(nvshmemx_team_get_uniqueid), int(nvshmemx_team_uniqueid_t*)>);
#endif

// The table's signatures, but for what is ours by name.
static_assert(std::is_same_v<decltype(nvshmemx_init_status), int()>);
static_assert(std::is_same_v<decltype(nvshmemx_get_uniqueid), int(nvshmemx_uniqueid_t*)>);
static_assert(
    std::is_same_v<decltype(nvshmemx_hostlib_init_attr), int(unsigned, nvshmemx_init_attr_t*)>);
static_assert(std::is_same_v<decltype(nvshmem_my_pe), int()>);
static_assert(std::is_same_v<decltype(nvshmem_n_pes), int()>);
static_assert(std::is_same_v<decltype(nvshmem_malloc), void*(std::size_t)>);
static_assert(std::is_same_v<decltype(nvshmem_free), void(void*)>);
static_assert(std::is_same_v<decltype(nvshmem_ptr), void*(const void*, int)>);
