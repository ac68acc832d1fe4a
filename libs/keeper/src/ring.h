// What a stream of the running entry has printed and the worker has not yet stored. Offsets count from the entry's first byte.
#ifndef RING_H
#define RING_H
#include <stddef.h>
#include <stdint.h>

enum { RING_BYTES = 4 << 20 };

// acked <= sent <= received <= acked + RING_BYTES
typedef struct {
  uint8_t *bytes;
  uint64_t received, sent, acked;
} Ring;

void ring_open(Ring *ring);
// For a new entry. Memory that was touched goes back to the system, so that an idle session is charged for next to nothing.
void ring_reset(Ring *ring);
// Where to receive, and how much fits in one piece; 0 when full.
uint8_t *ring_space(const Ring *ring, size_t *n);
// What to send next, in one piece.
const uint8_t *ring_unsent(const Ring *ring, size_t *n);
int ring_is_full(const Ring *ring);

#endif
