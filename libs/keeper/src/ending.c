#define _GNU_SOURCE
#include "ending.h"
#include "link.h"
#include "output.h"
#include "shell.h"
#include <string.h>

enum { PAYLOAD_BYTES = 512, USAGE_IS_KNOWN = 1, HAS_BUILTIN = 2 };

// The payload of END without the text that follows.
typedef struct {
  int32_t code;
  uint8_t reason, state, signal, flags;
  uint32_t shell_number, run_ms;
  uint64_t totals[STREAMS];
  uint64_t processor_us, memory_peak;
} EndFields;
_Static_assert(sizeof(EndFields) == 48, "the payload of END has no padding");

static EndFields end;
static const char *end_text;
static int is_sent;

static struct {
  enum ShellState state;
  const char *reason;
} noted;

void ending_note_shell(enum ShellState state, const char *reason) {
  if (state <= noted.state) return;
  noted.state = state;
  noted.reason = reason;
}

void ending_clear(void) {
  memset(&end, 0, sizeof end);
  is_sent = 0;
}

void ending_set(const Ending *ending) {
  end.code = ending->code;
  end.reason = ending->reason;
  end.signal = ending->signal;
  end.run_ms = ending->run_ms;
  end.flags = (ending->usage.is_known ? USAGE_IS_KNOWN : 0) | (shell_is_stepped() ? HAS_BUILTIN : 0);
  end.processor_us = ending->usage.processor_us;
  end.memory_peak = ending->usage.memory_peak;
  end.shell_number = shell_number();
  end.state = noted.state;
  end_text = noted.reason;
  noted.state = KEPT;
  noted.reason = 0;
}

void ending_repeat(void) { is_sent = 0; }
int ending_is_sent(void) { return is_sent; }

int ending_send(const uint8_t *id) {
  if (is_sent) return 1;
  for (int s = 0; s < STREAMS; s++) end.totals[s] = output_received(s);
  uint8_t payload[PAYLOAD_BYTES];
  const size_t n = end_text ? strnlen(end_text, sizeof payload - sizeof end) : 0;
  memcpy(payload, &end, sizeof end);
  if (n) memcpy(payload + sizeof end, end_text, n);
  is_sent = link_put(END, 0, 0, id, 0, payload, sizeof end + n);
  return is_sent;
}
