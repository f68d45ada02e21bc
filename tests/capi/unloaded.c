/* hocket in a plugin: unloaded while its thread waits for the end of other ranks, it must go on to
 * live, as the thread does. argv[1]: the library. */
#define _DEFAULT_SOURCE /* usleep */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "hocket/c.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*init)(const hocket_init_options*, hocket_comm**);
  int (*rank_of)(const hocket_comm*, int*);
  int (*barrier)(hocket_comm*, const hocket_call_options*);
  *(void**)&init = dlsym(library, "hocket_init");
  *(void**)&rank_of = dlsym(library, "hocket_comm_rank");
  *(void**)&barrier = dlsym(library, "hocket_barrier");
  hocket_comm* world = NULL; /* kept */
  int rank = 0;
  if (init(NULL, &world) != HOCKET_OK || rank_of(world, &rank) != HOCKET_OK) return 1;
  if (barrier(world, NULL) != HOCKET_OK) return 1;
  if (dlclose(library) != 0) return 1;
  if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL) {
    fprintf(stderr, "its code is gone, and its thread is not\n");
    return 1;
  }
  usleep(100000 + 200000 * (unsigned)rank); /* the thread wakes when the ranks before end */
  return 0;
}
