#define _GNU_SOURCE
#include "reaper.h"
#include "log.h"
#include <sys/wait.h>

// Room for the shell, four terminals, five file calls, the forwarder, and some that are forgotten too late.
enum { WATCHED = 24 };

static struct {
  pid_t pid; // 0: free
  int has_ended, status;
} children[WATCHED];

void reaper_watch(pid_t pid) {
  for (int i = 0; i < WATCHED; i++) {
    if (children[i].pid) continue;
    children[i].pid = pid;
    children[i].has_ended = 0;
    return;
  }
  log_message("no room to watch another child");
}

void reaper_forget(pid_t pid) {
  for (int i = 0; i < WATCHED; i++)
    if (pid > 0 && children[i].pid == pid) children[i].pid = 0;
}

void reap_children(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) { // ECHILD, the only failure, is the end
    for (int i = 0; i < WATCHED; i++) {
      if (children[i].pid != pid) continue;
      children[i].has_ended = 1;
      children[i].status = status;
    }
  }
}

int reaper_take(pid_t pid, int *status) {
  for (int i = 0; i < WATCHED; i++) {
    if (pid <= 0 || children[i].pid != pid || !children[i].has_ended) continue;
    *status = children[i].status;
    children[i].pid = 0;
    return 1;
  }
  return 0;
}
