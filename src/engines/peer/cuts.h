// Cuts parts into pieces for the channels, and chooses the blocks and threads of a launch. Both
// ends of a link cut in the same way: a cut depends only on the bytes, the lane and the tuning.
#pragma once

#include "engines/peer/plan.h"

namespace hocket::engines::peer {

// Fill in the rest of `step`: units and channels of its parts, rounds, groups, blocks, threads.
void cut_small(Step& step);
void cut_packets(Step& step, const PeerTuning& tuning);
void cut_chunks(Step& step, const PeerTuning& tuning);

}  // namespace hocket::engines::peer
