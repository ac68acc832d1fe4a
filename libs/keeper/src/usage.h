// What the container uses while an entry runs.
//
// USAGE-1. All processes of the container count, and so do those that earlier entries left behind.
// USAGE-2. Nothing is guessed: without a counter of the kernel's for the container, the usage is not known.
#ifndef USAGE_H
#define USAGE_H
#include <stdint.h>

typedef struct {
  int is_known;
  uint64_t processor_us; // from the beginning of the entry to its end
  uint64_t memory_peak;  // highest number of bytes since the container began
} Usage;

// Called when the entry begins to run. `continues`: no process but keeper and shell was there since the entry before.
void usage_begin(int continues);
// Returns the usage of an entry that began to run and ends now.
Usage usage_end(void);

#endif
