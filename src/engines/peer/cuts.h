// How parts are cut for the channels, and how many blocks and threads a launch takes. Both ends of
// a link cut alike: what a part becomes follows from its bytes, the lane and the tuning.
#pragma once

#include "engines/peer/plan.h"

namespace hocket::engines::peer {

// Fill in what `step` lacks: units and channels of its parts, rounds, groups, blocks, threads.
void cut_small(Step& step);
void cut_packets(Step& step, const PeerTuning& tuning);
void cut_chunks(Step& step, const PeerTuning& tuning);

}  // namespace hocket::engines::peer
