// A library that calls a function of another by its table of addresses; see os_imports_test.cc.
#include <unistd.h>

extern "C" int by_import() { return ::getppid(); }
