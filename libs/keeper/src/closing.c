#define _GNU_SOURCE
#include "closing.h"
#include "clock.h"
#include "entry.h"
#include "link.h"
#include "shell.h"
#include <signal.h>
#include <unistd.h>

enum { TICK_MS = 10, FLUSH_MS = 500 };

static struct {
  int is_on, was_asked; // was_asked: the shell was asked to run its EXIT trap and end
  uint64_t deadline;
  uint32_t after_entry_ms; // 0: no end is due after the entry
} own;

void closing_begin(uint32_t termination_ms) {
  own.is_on = 1;
  own.deadline = now_ms() + termination_ms;
  entry_begin_closing(termination_ms);
}

void closing_begin_after_entry(uint32_t termination_ms) { own.after_entry_ms = termination_ms; }

int closing_tick(void) {
  if (!own.is_on && own.after_entry_ms && !entry_is_busy()) closing_begin(own.after_entry_ms);
  if (!own.is_on) return -1;
  const uint64_t now = now_ms();
  const int is_in_time = now < own.deadline;
  if (entry_is_busy() && is_in_time) return TICK_MS;
  if (!own.was_asked && !entry_is_busy() && shell_is_ready()) {
    shell_leave();
    own.was_asked = 1;
  }
  if (own.was_asked && shell_pid() > 0 && is_in_time) return (int)(own.deadline - now);
  kill(-1, SIGKILL); // ESRCH: all have ended
  if ((link_is_flushed() && entry_is_delivered()) || now > own.deadline + FLUSH_MS) _exit(0);
  return TICK_MS;
}
