// Messages between two ranks, as tasks over a PointToPoint.
#pragma once

#include "engine/point_to_point.h"
#include "engine/task.h"
#include "hocket/communicator.h"

namespace hocket::comm {

// Each ends when the bytes may be used again; destroying one takes the message back.
engine::Task send_message(engine::PointToPoint& via, engine::Envelope to, ConstArrayView in);
// `received`, which outlives the task or is null, learns who sent.
engine::Task receive_message(engine::PointToPoint& via,
                             engine::Envelope from,
                             ArrayView out,
                             Received* received);
engine::Task send_and_receive(engine::PointToPoint& via,
                              engine::Envelope to,
                              ConstArrayView in,
                              engine::Envelope from,
                              ArrayView out);

}  // namespace hocket::comm
