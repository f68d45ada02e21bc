// Divides parts into pieces for the channels, and chooses the blocks and threads of a launch. Both
// ends of a link divide a part in the same way, because the division depends only on the bytes, the
// lane, and the tuning.
#pragma once

#include "engines/peer/plan.h"

namespace hocket::engines::peer {

// Complete `step`, for small calls, packets, and chunks: set the units and channels of its parts,
// and the rounds, groups, blocks and threads of the launch.
void cut_small(Step& step);
void cut_packets(Step& step, const PeerTuning& tuning);
void cut_chunks(Step& step, const PeerTuning& tuning);

}  // namespace hocket::engines::peer
