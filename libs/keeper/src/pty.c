#define _GNU_SOURCE
#include "pty.h"
#include "child.h"
#include "log.h"
#include "reaper.h"
#include "shell.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MOST_SIDE = 10000 };

int opening_parse(Cursor *cursor, Opening *opening) {
  opening->rows = take_u32(cursor);
  opening->columns = take_u32(cursor);
  opening->env_bytes = take_u32(cursor);
  opening->env = take_bytes(cursor, opening->env_bytes);
  if (cursor->bad || cursor->left) return 0;
  return !opening->env_bytes || !opening->env[opening->env_bytes - 1];
}

void pty_set_size(int fd, uint32_t rows, uint32_t columns) {
  const struct winsize size = {.ws_row = rows < MOST_SIDE ? rows : MOST_SIDE,
                               .ws_col = columns < MOST_SIDE ? columns : MOST_SIDE};
  ioctl(fd, TIOCSWINSZ, &size); // of a terminal it cannot fail
}

// Opens both sides of a new pseudo-terminal. The program's side must not become the keeper's controlling terminal.
static int open_pair(int *program_side) {
  const int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  int locked = 0;
  unsigned number;
  char path[32];
  *program_side = -1;
  if (!ioctl(fd, TIOCSPTLCK, &locked) && !ioctl(fd, TIOCGPTN, &number)) {
    snprintf(path, sizeof path, "/dev/pts/%u", number);
    *program_side = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  if (*program_side >= 0) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

// Executes the shell in the child, in the present directory of the session's shell.
static void become_shell(int program_side, const Opening *opening) {
  char path[48];
  snprintf(path, sizeof path, "/proc/%d/cwd", shell_pid());
  child_setup_program();
  setsid(); // a fork leads no group, so it cannot fail
  if (ioctl(program_side, TIOCSCTTY, 0)) _exit(126);
  for (int i = 0; i < 3; i++)
    if (dup2(program_side, i) < 0) _exit(126);
  if (shell_pid() > 0 && chdir(path)) errno = 0; // the shell then starts in the keeper's directory
  for (uint32_t at = 0; at < opening->env_bytes;) {
    char *variable = (char *)opening->env + at;
    at += strlen(variable) + 1;
    if (strchr(variable, '=')) putenv(variable); // without memory the variable is missing
  }
  char *const arguments[] = {(char *)shell_program(), "-i", 0};
  execvp(arguments[0], arguments);
  _exit(errno == ENOENT ? 127 : 126);
}

pid_t pty_spawn(const Opening *opening, int *fd, char *problem, size_t size) {
  int program_side;
  *fd = open_pair(&program_side);
  if (*fd < 0) {
    snprintf(problem, size, "the sandbox has no pseudo-terminals: %s", strerror(errno));
    log_message("%s", problem);
    return 0;
  }
  pty_set_size(*fd, opening->rows, opening->columns);
  const pid_t pid = fork();
  if (!pid) become_shell(program_side, opening);
  close(program_side);
  if (pid > 0) {
    reaper_watch(pid);
    return pid;
  }
  snprintf(problem, size, "the sandbox has no room for another process: %s", strerror(errno));
  log_message("%s", problem);
  close(*fd);
  return 0;
}
