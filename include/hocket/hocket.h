// hocket: collective communication for arrays.
#pragma once

#include "hocket/algorithm.h"
#include "hocket/array_view.h"
#include "hocket/bootstrap.h"
#include "hocket/communicator.h"
#include "hocket/device_pool.h"
#include "hocket/error.h"
#include "hocket/group.h"
#include "hocket/interrupt.h"
#include "hocket/launch.h"
#include "hocket/object.h"
#include "hocket/store.h"
#include "hocket/stream.h"
#include "hocket/symmetric.h"
#include "hocket/types.h"
#include "hocket/work.h"
