#define _GNU_SOURCE
#include "child.h"
#include "identity.h"
#include "link.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { OOM_SCORE_ABOVE_OURS = 300 };

static void raise_oom_score(void) {
  char text[16];
  const int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  if (fd < 0) return; // the kernel then chooses by size alone
  const ssize_t n = read(fd, text, sizeof text - 1);
  text[n > 0 ? n : 0] = 0;
  const int raised = atoi(text) + OOM_SCORE_ABOVE_OURS;
  snprintf(text, sizeof text, "%d", raised > 1000 ? 1000 : raised);
  if (pwrite(fd, text, strlen(text), 0) < 0) errno = 0; // as above
  close(fd);
}

void child_setup(void) {
  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL); // refused for SIGKILL and SIGSTOP
  signal(SIGXFSZ, SIG_IGN);                          // a file operation reports that its file is too large
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, 0);
  link_abandon();
  identity_forget();
  const int null = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; i++)
    if (dup2(null, i) < 0) close(i); // without /dev/null in the image: closed rather than the keeper's
  if (null > 2) close(null);
}

// A process can write to its own files in /proc only while it may be traced.
void child_setup_program(void) {
  child_setup();
  signal(SIGXFSZ, SIG_DFL);
  prctl(PR_SET_DUMPABLE, 1); // with 1 and 0 it cannot fail
  raise_oom_score();
  prctl(PR_SET_DUMPABLE, 0);
}
