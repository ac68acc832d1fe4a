#define _GNU_SOURCE
#include "ladder.h"
#include "clock.h"
#include "log.h"
#include "shell.h"
#include <signal.h>

enum { TICK_MS = 10, LEAST_SAVE_MS = 250, ASK_AGAIN_MS = 100 };

static struct {
  int is_on;
  enum { BEGUN, INTERRUPTED, TERMINATED } step;
  enum EndReason reason;
  Moment since, asked; // when the command began, and when the shell was asked to come back
  uint64_t began_at, asked_at;
  uint32_t grace;
} own;

void ladder_begin(enum EndReason reason, uint32_t grace_ms, Moment since) {
  own.is_on = 1;
  own.step = BEGUN;
  own.reason = reason;
  own.since = since;
  own.grace = grace_ms;
  own.asked = moment_now();
  own.began_at = own.asked_at = now_ms();
}

int ladder_is_on(void) { return own.is_on; }
enum EndReason ladder_reason(void) { return own.reason; }
void ladder_end(void) { own.is_on = 0; }

// Sends the signals of the step that is due. Returns how many processes are left.
static int climb(uint64_t passed) {
  const int left = sweep(0, own.since, shell_pid());
  if (own.step == BEGUN) {
    own.step = INTERRUPTED;
    // Processes that the shell starts from now on belong to the EXIT trap of the command.
    if (own.grace) sweep_between(SIGINT, own.since, own.asked, shell_pid());
    if (own.grace) return left;
  }
  if (own.step == INTERRUPTED && passed >= own.grace / 5) {
    own.step = TERMINATED;
    if (own.grace && left) return sweep(SIGTERM, own.since, shell_pid());
  }
  // The sweep is repeated until no process is left, because a process that was just starting may be seen only now.
  if (own.step == TERMINATED && passed >= (uint64_t)own.grace * 3 / 5 && left)
    return sweep_kill(own.since, shell_pid());
  return left;
}

int ladder_tick(int shell_is_back) {
  const uint64_t passed = now_ms() - own.began_at;
  const int left = climb(passed);
  if (shell_is_back && (!left || passed > (uint64_t)own.grace + LEAST_SAVE_MS)) return LADDER_DONE;
  // The first signal may be lost in a running trap of the user's, or in a builtin that signals do not interrupt.
  if (!shell_is_back && now_ms() - own.asked_at >= ASK_AGAIN_MS) {
    own.asked_at = now_ms();
    shell_interrupt();
  }
  if (!shell_is_back && passed >= (own.grace > LEAST_SAVE_MS ? own.grace : LEAST_SAVE_MS)) {
    log_message("the shell did not come back within the grace and is killed");
    shell_kill();
  }
  return TICK_MS;
}
