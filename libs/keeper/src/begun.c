#define _GNU_SOURCE
#include "begun.h"
#include "memory.h"
#include "wire.h"
#include <string.h>

enum { REMEMBERED = 65536 };

// Read from end to end: a session of a thousand commands reads 16 KB, and a full list costs 60 µs. An index would cost
// memory in every session for the sake of a few.
static uint8_t (*ids)[ID_BYTES];
static uint32_t count;

int begun_open(void) {
  ids = memory_reserve(REMEMBERED * ID_BYTES);
  return ids != 0;
}

int begun_has(const uint8_t *id) {
  const uint32_t kept = count < REMEMBERED ? count : REMEMBERED;
  for (uint32_t i = 0; i < kept; i++)
    if (!memcmp(ids[i], id, ID_BYTES)) return 1;
  return 0;
}

void begun_add(const uint8_t *id) { memcpy(ids[count++ % REMEMBERED], id, ID_BYTES); }

uint32_t begun_count(void) { return count; }
