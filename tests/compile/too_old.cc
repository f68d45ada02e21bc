// Compiled as C++17, it is told what hocket needs, and nothing else.
#include "hocket/communicator.h"
#include "hocket/hocket.h"
