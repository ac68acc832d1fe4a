#define _GNU_SOURCE
#include "begun.h"
#include "memory.h"
#include "wire.h"
#include <string.h>

enum { REMEMBERED = 65536, BLOCK = 64 /* a divisor of REMEMBERED */ };

// A look-up compares short marks of all ids (128 KB for a full list), and whole ids only where marks are equal. An
// index would cost memory in every session, and only the few sessions with long lists would gain.
static uint8_t (*ids)[ID_BYTES];
static uint16_t *marks;
static uint32_t count;

int begun_open(void) {
  ids = memory_reserve(REMEMBERED * ID_BYTES);
  marks = memory_reserve(REMEMBERED * sizeof *marks);
  return ids && marks;
}

// The last bytes of an id are random, so they serve as its mark.
static uint16_t mark_of(const uint8_t *id) { return id[ID_BYTES - 1] | id[ID_BYTES - 2] << 8; }

static int block_has(const uint16_t *block, uint16_t mark) {
  uint16_t found = 0;
  for (int i = 0; i < BLOCK; i++) found |= block[i] == mark;
  return found;
}

int begun_has(const uint8_t *id) {
  const uint32_t kept = count < REMEMBERED ? count : REMEMBERED;
  const uint16_t mark = mark_of(id);
  for (uint32_t from = 0; from < kept; from += BLOCK) {
    if (!block_has(marks + from, mark)) continue;
    for (uint32_t i = from; i < from + BLOCK && i < kept; i++)
      if (!memcmp(ids[i], id, ID_BYTES)) return 1;
  }
  return 0;
}

void begun_add(const uint8_t *id) {
  const uint32_t at = count++ % REMEMBERED;
  memcpy(ids[at], id, ID_BYTES);
  marks[at] = mark_of(id);
}

uint32_t begun_count(void) { return count; }
