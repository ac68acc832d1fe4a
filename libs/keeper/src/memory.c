#define _GNU_SOURCE
#include "memory.h"
#include "log.h"
#include <sys/mman.h>

void *memory_reserve(size_t bytes) {
  void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) return memory;
  log_failure("mmap");
  return 0;
}

void memory_release(void *from, size_t bytes) {
  madvise(from, bytes, MADV_DONTNEED); // a failure costs memory and nothing else
}
