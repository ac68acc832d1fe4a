#define _GNU_SOURCE
#include "report.h"
#include "folder.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[32 << 10]; // and not yet understood
static size_t said_bytes;
static int has_exit_trap, has_hooks;

void report_forget(void) { said_bytes = has_exit_trap = has_hooks = 0; }
int report_has_exit_trap(void) { return has_exit_trap; }

static const struct {
  const char *note, *reason;
} NOTES[] = {
  {"incomplete", "the shell ended and its state could not be saved whole"},
  {"functions", "the shell re-executed itself: its functions are gone"},
  {"locals", "the shell re-executed itself inside a function: local variables may have replaced global ones"},
  {"jobs", "the shell re-executed itself: it no longer knows its background jobs"},
  {"dirs", "the shell re-executed itself: its directory stack is gone"},
  {"command", "a function named command was removed: it kept the session's shell from working"},
  {"builtins", "builtins that the session's shell needs were enabled again"},
  {"readonly", "a variable given to one command was made read-only by it, and stays"},
  {"directory", "the directory from before the command is gone"},
};

static void parse_notes(const char *notes, Report *result) {
  result->state = KEPT;
  result->reason = 0;
  result->no_cwd = !strncmp(notes, "cwd", 3);
  for (size_t i = 0; i < sizeof NOTES / sizeof *NOTES && !result->reason; i++)
    if (strstr(notes, NOTES[i].note)) result->state = PARTIAL, result->reason = NOTES[i].reason;
}

static const char *find(const char *words, size_t n, const char *what) { return memmem(words, n, what, strlen(what)); }

// What the shell printed of its traps before a report. The one on EXIT is the loop's own, or the user's, which is kept in a file
// for the end of the shell. What bash prints before it (`hooks`) it does not show to a shell that re-executes itself in a function.
static void keep_traps(const char *words, size_t n) {
  const char *traps = find(words, n, "trap -- "), *end = words + n;
  const char *ours = find(words, n, "trap -- '{ __sf_leave ");
  const char *hooks_end = ours ? ours : end;
  if (!ours) has_exit_trap = traps && folder_write("exit", traps, end - traps, "");
  const int hooks = traps && traps < hooks_end;
  if (hooks || has_hooks) folder_write("hooks", hooks ? traps : "", hooks ? hooks_end - traps : 0, "");
  has_hooks = hooks;
}

// A report is `turn code notes`, or `turn leaving`. Without the turn's number it was written by somebody else and means nothing.
// Takes the first one out of what has been said; 0 when there is none.
static int take_line(const char *turn, char *words, size_t size) {
  const char *found = memmem(said, said_bytes, turn, strlen(turn));
  const char *end = found ? memchr(found, '\n', said + said_bytes - found) : 0;
  if (!end) return 0;
  const char *from = found + strlen(turn);
  const size_t n = (size_t)(end - from) < size - 1 ? (size_t)(end - from) : size - 1;
  memcpy(words, from, n);
  words[n] = 0;
  if (strstr(words, " same")) keep_traps(said, found - said);
  if (strstr(words, ",ran")) has_exit_trap = 0; // the end of the command was the end of what it was for
  said_bytes -= end + 1 - said;
  memmove(said, end + 1, said_bytes);
  return 1;
}

enum Reported report_read(int pipe, const char *turn, Report *report) {
  char words[128];
  for (;;) {
    if (take_line(turn, words, sizeof words)) {
      if (!strcmp(words, " leaving")) return SAID_LEAVING;
      char *rest;
      report->code = strtol(words, &rest, 10) & 0xff;
      parse_notes(*rest == ' ' ? rest + 1 : rest, report);
      return SAID_ENDED;
    }
    if (said_bytes == sizeof said) said_bytes = 0; // nobody's words
    const ssize_t n = read(pipe, said + said_bytes, sizeof said - said_bytes);
    if (n <= 0) return NOTHING_SAID;
    said_bytes += n;
  }
}
