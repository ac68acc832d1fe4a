#define _GNU_SOURCE
#include "ring.h"
#include <sys/mman.h>

enum { KEPT_BYTES = 64 << 10 };

void ring_open(Ring *ring, size_t size) {
  ring->size = size;
  ring->bytes = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ring->received = ring->sent = ring->acked = 0;
}

void ring_reset(Ring *ring) {
  if (ring->size > KEPT_BYTES && ring->received > KEPT_BYTES) madvise(ring->bytes + KEPT_BYTES, ring->size - KEPT_BYTES, MADV_DONTNEED);
  ring->received = ring->sent = ring->acked = 0;
}

static size_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint8_t *ring_space(const Ring *ring, size_t *n) {
  const size_t at = ring->received % ring->size;
  *n = smaller(ring->size - at, ring->size - (ring->received - ring->acked));
  return ring->bytes + at;
}

const uint8_t *ring_unsent(const Ring *ring, size_t *n) {
  const size_t at = ring->sent % ring->size;
  *n = smaller(ring->size - at, ring->received - ring->sent);
  return ring->bytes + at;
}

int ring_is_full(const Ring *ring) { return ring->received - ring->acked == ring->size; }
