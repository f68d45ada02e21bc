// Compiled with other flags than the library. It sees the defines that hocket needs, and little
// else.
#if defined(PACKED)
#pragma pack(1)
#endif
#include "hocket/communicator.h"
#include "hocket/hocket.h"
