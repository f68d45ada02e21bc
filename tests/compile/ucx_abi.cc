// src/engines/ucx/abi.h against UCX's own header.
#include <ucp/api/ucp.h>

#include <cstddef>

#include "engines/ucx/abi.h"

namespace ours = hocket::engines::ucx;

template <typename A, typename B>
constexpr bool equal(A one, B other) {
  return static_cast<long long>(one) == static_cast<long long>(other);
}

static_assert(sizeof(ours::UcsStatus) == sizeof(ucs_status_t));
static_assert(equal(ours::UcsStatus::kOk, UCS_OK));
static_assert(equal(ours::UcsStatus::kInProgress, UCS_INPROGRESS));
static_assert(equal(ours::UcsStatus::kTruncated, UCS_ERR_MESSAGE_TRUNCATED));
static_assert(equal(ours::UcsStatus::kNoResource, UCS_ERR_NO_RESOURCE));
static_assert(equal(ours::UcsStatus::kBusy, UCS_ERR_BUSY));
static_assert(equal(ours::UcsStatus::kCancelled, UCS_ERR_CANCELED));
static_assert(equal(ours::UcsStatus::kLast, UCS_ERR_LAST));

using ours::ContextParams;
static_assert(sizeof(ContextParams) >= offsetof(ucp_params_t, estimated_num_ppn));
static_assert(offsetof(ContextParams, features) == offsetof(ucp_params_t, features));
static_assert(offsetof(ContextParams, workers_shared) == offsetof(ucp_params_t, mt_workers_shared));
static_assert(equal(ContextParams::kFeatures, UCP_PARAM_FIELD_FEATURES));
static_assert(equal(ContextParams::kFeatureTag, UCP_FEATURE_TAG));
static_assert(equal(ContextParams::kFeatureWakeup, UCP_FEATURE_WAKEUP));
static_assert(equal(ContextParams::kFeatureAm, UCP_FEATURE_AM));

using ours::ContextAttributes;
static_assert(sizeof(ContextAttributes) >= sizeof(ucp_context_attr_t));
static_assert(offsetof(ContextAttributes, memory_types) ==
              offsetof(ucp_context_attr_t, memory_types));
static_assert(equal(ContextAttributes::kMemoryTypes, UCP_ATTR_FIELD_MEMORY_TYPES));
static_assert(equal(ours::UcsMemoryType::kHost, UCS_MEMORY_TYPE_HOST));
static_assert(equal(ours::UcsMemoryType::kCuda, UCS_MEMORY_TYPE_CUDA));

using ours::WorkerParams;
static_assert(offsetof(WorkerParams, thread_mode) == offsetof(ucp_worker_params_t, thread_mode));
static_assert(offsetof(WorkerParams, events) == offsetof(ucp_worker_params_t, events));
static_assert(equal(WorkerParams::kThreadMode, UCP_WORKER_PARAM_FIELD_THREAD_MODE));
static_assert(equal(WorkerParams::kSerialized, UCS_THREAD_MODE_SERIALIZED));
static_assert(sizeof(ucs_thread_mode_t) == sizeof(int));

using ours::EndpointParams;
static_assert(offsetof(EndpointParams, address) == offsetof(ucp_ep_params_t, address));
static_assert(offsetof(EndpointParams, error_mode) == offsetof(ucp_ep_params_t, err_mode));
static_assert(offsetof(EndpointParams, error_handler) == offsetof(ucp_ep_params_t, err_handler));
static_assert(offsetof(EndpointParams, user_data) == offsetof(ucp_ep_params_t, user_data));
static_assert(equal(EndpointParams::kRemoteAddress, UCP_EP_PARAM_FIELD_REMOTE_ADDRESS));
static_assert(equal(EndpointParams::kErrorMode, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE));
static_assert(equal(EndpointParams::kErrorHandler, UCP_EP_PARAM_FIELD_ERR_HANDLER));
static_assert(equal(EndpointParams::kModePeer, UCP_ERR_HANDLING_MODE_PEER));

using ours::AmHandlerParam;
static_assert(offsetof(AmHandlerParam, id) == offsetof(ucp_am_handler_param_t, id));
static_assert(offsetof(AmHandlerParam, callback) == offsetof(ucp_am_handler_param_t, cb));
static_assert(offsetof(AmHandlerParam, argument) == offsetof(ucp_am_handler_param_t, arg));
static_assert(equal(AmHandlerParam::kId, UCP_AM_HANDLER_PARAM_FIELD_ID));
static_assert(equal(AmHandlerParam::kCallback, UCP_AM_HANDLER_PARAM_FIELD_CB));
static_assert(equal(AmHandlerParam::kArgument, UCP_AM_HANDLER_PARAM_FIELD_ARG));
static_assert(equal(ours::AmReceiveParam::kRendezvous, UCP_AM_RECV_ATTR_FLAG_RNDV));
static_assert(offsetof(ours::AmReceiveParam, attributes) ==
              offsetof(ucp_am_recv_param_t, recv_attr));

using ours::RequestParam;
static_assert(offsetof(RequestParam, flags) == offsetof(ucp_request_param_t, flags));
static_assert(offsetof(RequestParam, callback) == offsetof(ucp_request_param_t, cb));
static_assert(sizeof(RequestParam::callback) == sizeof(ucp_request_param_t::cb));
static_assert(offsetof(ours::TagReceived, length) == offsetof(ucp_tag_recv_info_t, length));
static_assert(sizeof(ours::TagReceived::tag) == sizeof(ucp_tag_t));
static_assert(offsetof(RequestParam, datatype) == offsetof(ucp_request_param_t, datatype));
static_assert(offsetof(RequestParam, memory_type) == offsetof(ucp_request_param_t, memory_type));
static_assert(sizeof(RequestParam::memory_type) == sizeof(ucp_request_param_t::memory_type));
static_assert(equal(RequestParam::kMemoryType, UCP_OP_ATTR_FIELD_MEMORY_TYPE));
static_assert(offsetof(RequestParam, memory) == offsetof(ucp_request_param_t, memh));
static_assert(equal(RequestParam::kAtOnce, UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL));
static_assert(equal(RequestParam::kCallback, UCP_OP_ATTR_FIELD_CALLBACK));
static_assert(equal(RequestParam::kUserData, UCP_OP_ATTR_FIELD_USER_DATA));
static_assert(equal(RequestParam::kFlags, UCP_OP_ATTR_FIELD_FLAGS));
static_assert(equal(RequestParam::kAmEager, UCP_AM_SEND_FLAG_EAGER));
static_assert(equal(RequestParam::kCloseForce, UCP_EP_CLOSE_FLAG_FORCE));
