#define _GNU_SOURCE
#include "process_limit.h"
#include "cgroup.h"
#include "egress.h"
#include "ending.h"
#include "log.h"
#include "reaper.h"
#include "shell.h"
#include <unistd.h>

enum { ROOM_WITHIN_MS = 100, CROWD = 8, LOOK_MS = 50, ALONE = 2 /* keeper and shell */ };

static struct {
  uint64_t refused; // forks that the limit has refused so far
  int has_company;  // there were processes of earlier commands when the entry began
  int is_alone;     // there were no such processes; 0 where they cannot be counted
} own;

// Waits, because a killed process counts until it is reaped, and a shell whose fork was refused does not try again.
static void wait_for_room(void) {
  for (int ms = 0; ms < ROOM_WITHIN_MS; ms++) {
    reap_children();
    if (cgroup_pids_current() <= cgroup_pids_max() / CROWD) return;
    usleep(1000);
  }
}

static void report(void) {
  static const char TEXT[] = "background processes were ended at the limit of processes";
  log_message("%s", TEXT);
  ending_note_shell(PARTIAL, TEXT);
}

void process_limit_sweep(void) {
  sweep_kill(BEGINNING, shell_pid());
  wait_for_room();
  report();
}

// Recognises a fork bomb in the background. It is at the limit only at moments. So the signs are that forks were
// refused while no command ran, or that processes of earlier commands fill the limit.
static int is_short(void) {
  const uint64_t before = own.refused;
  const long now = cgroup_pids_current();
  own.has_company = now > ALONE + egress_processes();
  own.is_alone = now > 0 && !own.has_company;
  if (!own.has_company) return 0;
  own.refused = cgroup_pids_refused();
  return own.refused != before || cgroup_is_full_with(now);
}

void process_limit_make_room(void) {
  if (is_short()) process_limit_sweep();
}

int process_limit_is_alone(void) { return own.is_alone; }

int process_limit_counts_alone(void) {
  const long now = cgroup_pids_current();
  return now > 0 && now <= ALONE + egress_processes();
}

int process_limit_tick(Moment since) {
  if (!own.has_company) return -1;
  const uint64_t refused = cgroup_pids_refused();
  if (refused == own.refused) return LOOK_MS;
  own.refused = refused;
  if (processes_bystanders(since, shell_pid()) < cgroup_pids_max() / CROWD)
    return LOOK_MS; // the command itself fills it
  sweep_kill_bystanders(since, shell_pid());
  wait_for_room();
  report();
  return LOOK_MS;
}

void process_limit_settle(Moment since) {
  process_limit_tick(since); // a command may end before the first look, because its fork was refused
  own.refused = cgroup_pids_refused();
}
