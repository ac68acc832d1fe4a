// Bytes of a stream that the other side has not acknowledged yet. Offsets count from the first byte of the stream.
#ifndef RING_BUFFER_H
#define RING_BUFFER_H
#include <stddef.h>
#include <stdint.h>

// acked <= sent <= received <= acked + size
typedef struct {
  uint8_t *bytes;
  size_t size;
  uint64_t received, sent, acked;
} RingBuffer;

// 0 when there is no memory for it.
int ring_buffer_open(RingBuffer *buffer, size_t size);
// For a new stream. Memory that was touched goes back to the system, so that an idle session is charged for next to
// nothing.
void ring_buffer_reset(RingBuffer *buffer);
// Where to receive, and how much fits in one piece; 0 when full.
uint8_t *ring_buffer_space(const RingBuffer *buffer, size_t *n);
// What to send next, in one piece.
const uint8_t *ring_buffer_unsent(const RingBuffer *buffer, size_t *n);
int ring_buffer_is_full(const RingBuffer *buffer);

#endif
