#define _GNU_SOURCE
#include "report.h"
#include "run_directory.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_READS = 8 };

static struct {
  char bytes[32 << 10]; // read, and not part of a complete report yet
  size_t length;
  int has_exit_trap, has_hooks, lacks_own_trap, is_drained;
} own;

void report_forget(int keeps_traps) {
  own.length = own.lacks_own_trap = own.is_drained = 0;
  if (!keeps_traps) own.has_exit_trap = own.has_hooks = 0;
}

int report_lacks_own_trap(void) { return own.lacks_own_trap; }
int report_has_exit_trap(void) { return own.has_exit_trap; }

static const struct {
  const char *note, *reason;
} NOTES[] = {
  {"incomplete", "the shell ended and its state could not be saved whole"},
  {"functions", "the shell re-executed itself: its functions are gone"},
  {"locals", "the shell re-executed itself inside a function: local variables may have replaced global ones"},
  {"jobs", "the shell re-executed itself: its table of background jobs is gone"},
  {"dirs", "the shell re-executed itself: its directory stack is gone"},
  {"command", "a function named command was removed: it kept the session's shell from working"},
  {"builtins", "builtins that the session's shell needs were enabled again"},
  {"readonly", "a variable given to one command was made read-only by it, and stays"},
  {"directory", "the directory from before the command is gone"},
};

static void parse_notes(const char *notes, Report *report) {
  report->is_stepped = strstr(notes, "step") != 0;
  report->holds_pipes = strstr(notes, "step,held") != 0;
  report->state = KEPT;
  report->state_reason = 0;
  report->reason = !strncmp(notes, "cwd", 3) ? NO_CWD : !strncmp(notes, "syntax", 6) ? SYNTAX : EXITED;
  for (size_t i = 0; i < sizeof NOTES / sizeof *NOTES && !report->state_reason; i++)
    if (strstr(notes, NOTES[i].note)) report->state = PARTIAL, report->state_reason = NOTES[i].reason;
}

static const char *find(const char *text, size_t n, const char *what) { return memmem(text, n, what, strlen(what)); }

// Finds a word at the start of a line. A word elsewhere in a line was written by another process.
static const char *find_line(const char *text, size_t n, const char *what) {
  const char *found = find(text, n, what);
  while (found && found > text && found[-1] != '\n') found = find(found + 1, text + n - found - 1, what);
  return found;
}

// Stores the traps that the shell prints before a report: the user's trap on EXIT, for the shell's end, and the traps
// on DEBUG, RETURN and ERR (`hooks`), which a shell that re-executes itself inside a function does not see.
static void keep_traps(const char *text, size_t n) {
  const char *traps = find_line(text, n, "trap -- "), *end = text + n;
  const char *loop_trap = find_line(text, n, "trap -- '\\__sf_leave ");
  own.lacks_own_trap = !loop_trap;
  const char *hooks_end = loop_trap ? loop_trap : end;
  if (!loop_trap) own.has_exit_trap = traps && run_directory_write("exit", traps, end - traps, "");
  const int has_hooks = traps && traps < hooks_end;
  if (has_hooks || own.has_hooks)
    run_directory_write("hooks", has_hooks ? traps : "", has_hooks ? hooks_end - traps : 0, "");
  own.has_hooks = has_hooks;
}

// Returns whether the text after a run token is a report: ` code notes`, ` leaving` or ` saved`.
static int is_report(const char *line) {
  if (!strcmp(line, " leaving") || !strncmp(line, " saved", 6)) return 1;
  const size_t digits = *line == ' ' ? strspn(line + 1, "0123456789") : 0;
  return digits > 0 && line[1 + digits] == ' ';
}

// Takes the first report out of the bytes. Returns 0 when there is none. Ignores lines of other processes, without the
// run token, and traces (set -x), which have the token but are no report.
static int take_line(const char *run_token, char *line, size_t size) {
  const char *from = own.bytes, *const limit = own.bytes + own.length;
  for (;;) {
    const char *found = find(from, limit - from, run_token);
    const char *end = found ? memchr(found, '\n', limit - found) : 0;
    if (!end) return 0;
    from = found + strlen(run_token);
    const size_t n = (size_t)(end - from) < size - 1 ? (size_t)(end - from) : size - 1;
    memcpy(line, from, n);
    line[n] = 0;
    if (!is_report(line)) continue;
    own.lacks_own_trap = 0;
    if (strstr(line, " same")) keep_traps(own.bytes, found - own.bytes);
    if (strstr(line, ",ran")) own.has_exit_trap = 0; // it has run at the end of the command
    own.length -= end + 1 - own.bytes;
    memmove(own.bytes, end + 1, own.length);
    return 1;
  }
}

// Reads a limited number of bytes, because a process may fill the pipe without end. Later turns read the rest.
enum Reported report_read(int pipe, const char *run_token, Report *report) {
  char line[128];
  for (int reads = 0;; reads++) {
    if (take_line(run_token, line, sizeof line)) {
      if (!strcmp(line, " leaving")) return REPORTED_LEAVING;
      if (!strncmp(line, " saved", 6)) return REPORTED_SAVED;
      char *rest;
      report->code = strtol(line, &rest, 10) & 0xff;
      parse_notes(*rest == ' ' ? rest + 1 : rest, report);
      return REPORTED_END;
    }
    if (own.is_drained) { // later bytes wake the keeper again
      own.is_drained = 0;
      return NO_REPORT;
    }
    if (reads == MOST_READS) return NO_REPORT;
    if (own.length == sizeof own.bytes) { // no report is as long as the half that is kept
      own.length /= 2;
      memmove(own.bytes, own.bytes + own.length, own.length);
    }
    const size_t room = sizeof own.bytes - own.length;
    const ssize_t n = read(pipe, own.bytes + own.length, room);
    if (n <= 0) return NO_REPORT; // EAGAIN; the keeper holds a writing end, so there is no end of the file
    own.length += n;
    own.is_drained = (size_t)n < room;
  }
}
