#define _GNU_SOURCE
#include "ladder.h"
#include "clock.h"
#include "shell.h"
#include <signal.h>

enum { TICK_MS = 10, LEAST_SAVE_MS = 250, ASK_AGAIN_MS = 100 };

static int is_up, rung;
static enum EndReason reason;
static Moment since, asked; // the command began; the shell was asked to come back
static uint64_t began_at, asked_at;
static uint32_t grace;

void ladder_begin(enum EndReason why, uint32_t grace_ms, Moment moment) {
  is_up = 1;
  rung = 0;
  reason = why;
  since = moment;
  grace = grace_ms;
  asked = moment_now();
  began_at = asked_at = now_ms();
}

int ladder_is_up(void) { return is_up; }
enum EndReason ladder_reason(void) { return reason; }
void ladder_end(void) { is_up = 0; }

static int step(uint64_t passed) {
  const int left = sweep(0, since, shell_pid());
  if (rung == 0) {
    rung = 1;
    // What the shell starts now is the EXIT trap of the command.
    if (grace) sweep_between(SIGINT, since, asked, shell_pid());
    if (grace) return left;
  }
  if (rung == 1 && passed >= grace / 5) {
    rung = 2;
    if (grace && left) return sweep(SIGTERM, since, shell_pid());
  }
  // From here on until nothing is left: what was starting up may show only now.
  if (rung == 2 && passed >= (uint64_t)grace * 3 / 5 && left) return sweep_kill(since, shell_pid());
  return left;
}

int ladder_tick(int shell_is_back) {
  const uint64_t passed = now_ms() - began_at;
  const int left = step(passed);
  if (shell_is_back && (!left || passed > (uint64_t)grace + LEAST_SAVE_MS)) return LADDER_DONE;
  // A trap of the user's that runs, or a builtin that is not interrupted, may have swallowed the first.
  if (!shell_is_back && now_ms() - asked_at >= ASK_AGAIN_MS) {
    asked_at = now_ms();
    shell_interrupt();
  }
  if (!shell_is_back && passed >= (grace > LEAST_SAVE_MS ? grace : LEAST_SAVE_MS)) shell_kill();
  return TICK_MS;
}
