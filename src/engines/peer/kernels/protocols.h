// Includes all protocols, for files that compile them into kernels.
#pragma once

#include "engines/peer/kernels/barrier.h"
#include "engines/peer/kernels/exchange_chunks.h"
#include "engines/peer/kernels/exchange_packets.h"
#include "engines/peer/kernels/reduce_chunks.h"
#include "engines/peer/kernels/reduce_even.h"
#include "engines/peer/kernels/reduce_packets.h"
#include "engines/peer/kernels/small.h"
