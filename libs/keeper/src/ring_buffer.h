// Bytes of a stream that the other side has not acknowledged yet. Offsets count from the first byte of the stream.
#ifndef RING_BUFFER_H
#define RING_BUFFER_H
#include <stddef.h>
#include <stdint.h>

// A ring buffer, with acked <= sent <= received <= acked + size.
typedef struct {
  uint8_t *bytes;
  size_t size;
  uint64_t received, sent, acked;
} RingBuffer;

// Returns 0 when there is no memory for the buffer.
int ring_buffer_open(RingBuffer *buffer, size_t size);
// Empties the buffer for a new stream, and gives touched memory back to the system.
void ring_buffer_reset(RingBuffer *buffer);
// Returns where received bytes go, and sets `n` to how many fit in one piece: 0 when full.
uint8_t *ring_buffer_space(const RingBuffer *buffer, size_t *n);
// Returns the bytes to send next, in one piece of `n` bytes.
const uint8_t *ring_buffer_unsent(const RingBuffer *buffer, size_t *n);
int ring_buffer_is_full(const RingBuffer *buffer);

#endif
