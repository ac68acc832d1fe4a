#ifndef CLOCK_H
#define CLOCK_H
#include <stdint.h>
#include <time.h>

static inline uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
