// hocket: collective communication for arrays.
#pragma once

#include "hocket/admission.h"
#include "hocket/algorithm.h"
#include "hocket/array_view.h"
#include "hocket/audit.h"
#include "hocket/bootstrap.h"
#include "hocket/communicator.h"
#include "hocket/compression.h"
#include "hocket/context.h"
#include "hocket/error.h"
#include "hocket/exit.h"
#include "hocket/extremes.h"
#include "hocket/gpu.h"
#include "hocket/grid.h"
#include "hocket/group.h"
#include "hocket/interrupt.h"
#include "hocket/launch.h"
#include "hocket/object.h"
#include "hocket/operator.h"
#include "hocket/sparse.h"
#include "hocket/store.h"
#include "hocket/stream.h"
#include "hocket/strided.h"
#include "hocket/symmetric.h"
#include "hocket/trace.h"
#include "hocket/types.h"
#include "hocket/work.h"
// Arrays that are spread over ranks. A library that was built with HOCKET_ARRAYS=OFF has none of
// them.
#if __has_include("hocket/distribution.h")
#include "hocket/device_pool.h"
#include "hocket/distribution.h"
#include "hocket/fft.h"
#include "hocket/matmul.h"
#include "hocket/redistribute.h"
#endif
