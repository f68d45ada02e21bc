// A program of somebody else's: uses the installed library, on ranks that are threads.
#include <hocket/hocket.h>

#include <cstdio>
#include <vector>

int main() {
  int wrong = 0;
  hocket::run_threads(1, [&wrong](hocket::Communicator& comm) {
    std::vector<float> x{1, 2, 3};
    comm.all_reduce(x);
    wrong += x != std::vector<float>{1, 2, 3};
  });
  const hocket::Object object{{"answer", 42}};
  wrong += hocket::decode(hocket::encode(object)) != object;
  std::puts(wrong == 0 ? "outside: ok" : "outside: wrong");
  return wrong;
}
