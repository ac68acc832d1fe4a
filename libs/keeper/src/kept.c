#include "kept.h"
#include "process_limit.h"
#include "shell.h"

static struct {
  int is_kept;     // the shell has kept the pipes of the last entry, alone
  int opened_with; // number of the newest process when the pipes were opened; 0: they may not be kept
  int newest;      // number of the newest process at the last look
} own;

int kept_look(void) {
  own.newest = shell_is_stepped() ? processes_newest() : 0;
  return own.is_kept && own.newest && own.newest == own.opened_with;
}

int kept_allow(int is_alone) {
  own.opened_with = is_alone ? own.newest : 0;
  return own.opened_with != 0;
}

Moment kept_moment(void) { return moment_with(own.newest); }

enum Holder kept_end(const Report *report, int was_stopped) {
  own.is_kept = 0;
  if (!report || !report->holds_pipes) return UNKNOWN_HOLDER;
  if (was_stopped || !own.opened_with) return SHELL_AND_OTHERS;
  const int newest = processes_newest(); // before the count, so that a process that comes meanwhile has a higher number
  own.is_kept = newest == own.opened_with || process_limit_counts_alone();
  own.opened_with = newest;
  return own.is_kept ? SHELL_ALONE : SHELL_AND_OTHERS;
}
