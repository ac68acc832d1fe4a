#define _GNU_SOURCE
#include "orphan.h"
#include "clock.h"
#include "closing.h"
#include "link.h"
#include "log.h"
#include <errno.h>
#include <stdlib.h>

enum { READ_MS = 1000, MOST_WAIT_MS = 60000, TERMINATION_MS = 5000 };

static struct {
  uint64_t limit_ms; // 0: none
  uint64_t passed_at;
  int is_closing;
} own;

int orphan_open(void) {
  const char *text = getenv("SF_UNCLAIMED_MS");
  if (!text) return 1;
  char *end;
  errno = 0;
  own.limit_ms = strtoull(text, &end, 10);
  const int is_valid = *text >= '0' && *text <= '9' && !*end && !errno;
  unsetenv("SF_UNCLAIMED_MS");
  return is_valid;
}

int orphan_tick(void) {
  if (!own.limit_ms || own.is_closing) return -1;
  const uint64_t now = now_ms(), ends_at = link_confirmed_at() + own.limit_ms;
  if (now < ends_at) {
    own.passed_at = 0;
    return ends_at - now < MOST_WAIT_MS ? (int)(ends_at - now) : MOST_WAIT_MS;
  }
  // A keeper that stood still, with its whole machine for instance, first reads what has arrived meanwhile.
  if (!own.passed_at) own.passed_at = now;
  if (now - own.passed_at < READ_MS) return READ_MS;
  log_message("no worker has claimed this keeper for %llu ms", (unsigned long long)own.limit_ms);
  own.is_closing = 1;
  closing_begin(TERMINATION_MS);
  return 0;
}
