// Must not compile: arrays of what can be neither moved nor reduced. One case is chosen with -D.
#include <hocket/hocket.h>

#include <string>
#include <vector>

struct Particle {
  float x, y, z;
};

void call(hocket::Communicator& comm) {
#if defined(REFUSED_STRING)
  std::vector<std::string> array(4);
#elif defined(REFUSED_STRUCT)
  std::vector<Particle> array(4);
#elif defined(REFUSED_LONG_DOUBLE)
  std::vector<long double> array(4);
#endif
  comm.all_reduce(array);
}
