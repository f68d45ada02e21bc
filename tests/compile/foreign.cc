// Compiled otherwise than the library, it is told what hocket needs, and little else.
#if defined(PACKED)
#pragma pack(1)
#endif
#include "hocket/communicator.h"
#include "hocket/hocket.h"
