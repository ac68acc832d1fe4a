#define _GNU_SOURCE
#include "reaper.h"
#include "entry.h"
#include "shell.h"
#include "terminal.h"
#include <sys/wait.h>

void reap_children(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == shell_pid()) entry_on_shell_death(status);
    else if (!terminal_on_child(pid, status)) entry_on_child(pid, status);
  }
}
