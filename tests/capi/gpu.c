/* hocket/c.h on arrays in a GPU's memory, in the order of a stream. The driver is asked by its own
 * entry, so that building this takes no toolkit; without a driver or a GPU it is skipped. */
#include <dlfcn.h>

#include "check.h"

enum { kSkipped = 77, kCount = 1000 };

/* Of the driver's interface what is needed here. */
static void* driver;
static void* symbol(const char* name) {
  typedef int (*Finder)(const char*, void**, int, uint64_t, int*);
  Finder find;
  *(void**)&find = dlsym(driver, "cuGetProcAddress_v2");
  CHECK(find != NULL);
  void* function = NULL;
  int status = 0;
  CHECK(find(name, &function, 12000, 0, &status) == 0 && function != NULL);
  return function;
}

static int (*cu_init)(unsigned);
static int (*cu_device_count)(int*);
static int (*cu_context_of)(void**, int);
static int (*cu_set_context)(void*);
static int (*cu_alloc)(unsigned long long*, size_t);
static int (*cu_free)(unsigned long long);
static int (*cu_to_device)(unsigned long long, const void*, size_t, void*);
static int (*cu_to_host)(void*, unsigned long long, size_t, void*);
static int (*cu_stream)(void**, unsigned);
static int (*cu_end_stream)(void*);
static int (*cu_wait)(void*);

static int load_driver(void) {
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return 0;
  *(void**)&cu_init = symbol("cuInit");
  *(void**)&cu_device_count = symbol("cuDeviceGetCount");
  *(void**)&cu_context_of = symbol("cuDevicePrimaryCtxRetain");
  *(void**)&cu_set_context = symbol("cuCtxSetCurrent");
  *(void**)&cu_alloc = symbol("cuMemAlloc");
  *(void**)&cu_free = symbol("cuMemFree");
  *(void**)&cu_to_device = symbol("cuMemcpyHtoDAsync");
  *(void**)&cu_to_host = symbol("cuMemcpyDtoHAsync");
  *(void**)&cu_stream = symbol("cuStreamCreate");
  *(void**)&cu_end_stream = symbol("cuStreamDestroy");
  *(void**)&cu_wait = symbol("cuStreamSynchronize");
  int count = 0;
  return cu_init(0) == 0 && cu_device_count(&count) == 0 && count > 0;
}

static float value(int rank, int i) { return (float)(rank * 7 + i % 5 + 1); }

int main(void) {
  if (!load_driver()) {
    puts("skipped: no NVIDIA driver, or no GPU");
    return kSkipped;
  }
  hocket_comm* world = NULL;
  int n = 0, devices = 0;
  CHECK_OK(hocket_init(NULL, &world));
  CHECK_OK(hocket_comm_rank(world, &my_rank));
  CHECK_OK(hocket_comm_size(world, &n));
  CHECK(cu_device_count(&devices) == 0);
  void *context = NULL, *stream = NULL;
  CHECK(cu_context_of(&context, my_rank % devices) == 0 && cu_set_context(context) == 0);
  CHECK(cu_stream(&stream, 1) == 0);

  static float host[kCount];
  unsigned long long memory = 0;
  CHECK(cu_alloc(&memory, sizeof host) == 0);
  const hocket_array array = {(void*)(uintptr_t)memory, kCount, HOCKET_FLOAT32, HOCKET_MEMORY_CUDA};
  const hocket_call_options options = {.size = sizeof options, .stream = stream};

  /* Copy, call, copy: nothing waits in between but the stream. */
  for (int i = 0; i < kCount; ++i) host[i] = value(my_rank, i);
  CHECK(cu_to_device(memory, host, sizeof host, stream) == 0);
  CHECK_OK(hocket_all_reduce(world, NULL, &array, HOCKET_SUM, &options));
  CHECK(cu_to_host(host, memory, sizeof host, stream) == 0);
  CHECK(cu_wait(stream) == 0);
  for (int i = 0; i < kCount; ++i) {
    float sum = 0;
    for (int r = 0; r < n; ++r) sum += value(r, i);
    CHECK(host[i] == sum);
  }

  /* Async, and waited for by the stream. */
  for (int i = 0; i < kCount; ++i) host[i] = value(my_rank, i);
  CHECK(cu_to_device(memory, host, sizeof host, stream) == 0);
  hocket_work* work = NULL;
  CHECK_OK(hocket_broadcast_async(world, NULL, &array, n - 1, &options, &work));
  CHECK_OK(hocket_work_wait_on(work, stream));
  CHECK(cu_to_host(host, memory, sizeof host, stream) == 0);
  int done = 0;
  CHECK_OK(hocket_work_wait_for(work, HOCKET_FOREVER, &done));
  CHECK(done == 1 && cu_wait(stream) == 0);
  hocket_work_free(&work);
  for (int i = 0; i < kCount; ++i) CHECK(host[i] == value(n - 1, i));

  /* Symmetric memory there. */
  hocket_symmetric* symmetric = NULL;
  const hocket_symmetric_options there = {.size = sizeof there, .memory = HOCKET_MEMORY_CUDA};
  CHECK_OK(hocket_symmetric_empty(world, kCount, HOCKET_FLOAT32, &there, &symmetric));
  hocket_array local;
  CHECK_OK(hocket_symmetric_local(symmetric, &local));
  CHECK(local.memory == HOCKET_MEMORY_CUDA && local.count == kCount);
  const unsigned long long address = (unsigned long long)(uintptr_t)local.data;
  for (int i = 0; i < kCount; ++i) host[i] = value(my_rank, i);
  CHECK(cu_to_device(address, host, sizeof host, stream) == 0);
  CHECK_OK(hocket_all_reduce(world, NULL, &local, HOCKET_MAX, &options));
  CHECK(cu_to_host(host, address, sizeof host, stream) == 0 && cu_wait(stream) == 0);
  for (int i = 0; i < kCount; ++i) CHECK(host[i] == value(n - 1, i));
  hocket_symmetric_free(&symmetric);

  /* The host's memory is no GPU's. */
  const hocket_array wrong = {host, kCount, HOCKET_FLOAT32, HOCKET_MEMORY_CUDA};
  CHECK_FAILS(
      HOCKET_INVALID_ARGUMENT, "", hocket_all_reduce(world, NULL, &wrong, HOCKET_SUM, NULL));

  CHECK_OK(hocket_barrier(world, NULL));
  CHECK_OK(hocket_comm_close(world));
  hocket_comm_free(&world);
  CHECK(cu_free(memory) == 0 && cu_end_stream(stream) == 0);
  return 0;
}
