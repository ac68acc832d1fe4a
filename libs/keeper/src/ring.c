#define _GNU_SOURCE
#include "ring.h"
#include <sys/mman.h>

enum { KEPT_BYTES = 64 << 10 };

void ring_open(Ring *ring) {
  ring->bytes = mmap(0, RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ring->received = ring->sent = ring->acked = 0;
}

void ring_reset(Ring *ring) {
  if (ring->received > KEPT_BYTES) madvise(ring->bytes + KEPT_BYTES, RING_BYTES - KEPT_BYTES, MADV_DONTNEED);
  ring->received = ring->sent = ring->acked = 0;
}

static size_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint8_t *ring_space(const Ring *ring, size_t *n) {
  const size_t at = ring->received % RING_BYTES;
  *n = smaller(RING_BYTES - at, RING_BYTES - (ring->received - ring->acked));
  return ring->bytes + at;
}

const uint8_t *ring_unsent(const Ring *ring, size_t *n) {
  const size_t at = ring->sent % RING_BYTES;
  *n = smaller(RING_BYTES - at, ring->received - ring->sent);
  return ring->bytes + at;
}

int ring_is_full(const Ring *ring) { return ring->received - ring->acked == RING_BYTES; }
