// What a stream has brought and the other side has not yet stored. Offsets count from the stream's first byte.
#ifndef RING_H
#define RING_H
#include <stddef.h>
#include <stdint.h>

// acked <= sent <= received <= acked + size
typedef struct {
  uint8_t *bytes;
  size_t size;
  uint64_t received, sent, acked;
} Ring;

void ring_open(Ring *ring, size_t size);
// For a new entry. Memory that was touched goes back to the system, so that an idle session is charged for next to nothing.
void ring_reset(Ring *ring);
// Where to receive, and how much fits in one piece; 0 when full.
uint8_t *ring_space(const Ring *ring, size_t *n);
// What to send next, in one piece.
const uint8_t *ring_unsent(const Ring *ring, size_t *n);
int ring_is_full(const Ring *ring);

#endif
