#define _GNU_SOURCE
#include "ring_buffer.h"
#include "memory.h"

enum { KEPT_BYTES = 64 << 10 };

int ring_buffer_open(RingBuffer *buffer, size_t size) {
  buffer->size = size;
  buffer->bytes = memory_reserve(size);
  buffer->received = buffer->sent = buffer->acked = 0;
  return buffer->bytes != 0;
}

void ring_buffer_reset(RingBuffer *buffer) {
  if (buffer->size > KEPT_BYTES && buffer->received > KEPT_BYTES)
    memory_release(buffer->bytes + KEPT_BYTES, buffer->size - KEPT_BYTES);
  buffer->received = buffer->sent = buffer->acked = 0;
}

static size_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint8_t *ring_buffer_space(const RingBuffer *buffer, size_t *n) {
  const size_t at = buffer->received % buffer->size;
  *n = smaller(buffer->size - at, buffer->size - (buffer->received - buffer->acked));
  return buffer->bytes + at;
}

const uint8_t *ring_buffer_unsent(const RingBuffer *buffer, size_t *n) {
  const size_t at = buffer->sent % buffer->size;
  *n = smaller(buffer->size - at, buffer->received - buffer->sent);
  return buffer->bytes + at;
}

int ring_buffer_is_full(const RingBuffer *buffer) { return buffer->received - buffer->acked == buffer->size; }
