// All protocols, for whoever makes kernels of them.
#pragma once

#include "engines/peer/barrier.h"
#include "engines/peer/exchange_chunks.h"
#include "engines/peer/exchange_packets.h"
#include "engines/peer/reduce_chunks.h"
#include "engines/peer/reduce_even.h"
#include "engines/peer/reduce_packets.h"
#include "engines/peer/small.h"
