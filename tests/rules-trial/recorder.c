// Runs scripts and records the programs that they start. As `run` it is the driver, under every other name a program:
//   run LOG SCRIPT SHELL [ARGUMENT...] < frames     a frame is a 4-byte length and a script
// A program appends to LOG the length of its record, the number of its arguments, and each with a NUL behind it. The
// driver appends a zero after each script. Static, because the images differ in their C library.
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 1 << 16, SECONDS = 5, NOT_RECORDED = 99 };
static const char LOG[] = "/trial/out/log";

static int record(int argc, char **argv) {
  static char buffer[LONGEST];
  uint32_t header[2] = {0, (uint32_t)argc};
  size_t used = sizeof header;
  for (int i = 0; i < argc; i++) {
    size_t length = strlen(argv[i]) + 1;
    if (used + length > sizeof buffer) return NOT_RECORDED;
    memcpy(buffer + used, argv[i], length);
    used += length;
  }
  header[0] = (uint32_t)used;
  memcpy(buffer, header, sizeof header);
  int log = open(LOG, O_WRONLY | O_APPEND);
  if (log < 0 || write(log, buffer, used) != (ssize_t)used) return NOT_RECORDED;
  // Half of the commands fail, so that both sides of && and || run.
  unsigned sum = 0;
  for (char *at = argv[argc - 1]; *at; at++) sum += (unsigned char)*at;
  return sum & 1;
}

static int read_frame(char *script, uint32_t *length) {
  if (fread(length, sizeof *length, 1, stdin) != 1 || *length > LONGEST) return 0;
  return fread(script, 1, *length, stdin) == *length;
}

static void write_script(const char *path, const char *script, uint32_t length) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || write(file, script, length) != (ssize_t)length) exit(NOT_RECORDED);
  close(file);
}

static void run_script(char **shell) {
  pid_t child = fork();
  if (child < 0) exit(NOT_RECORDED);
  if (child == 0) {
    // The driver reads frames at its own position of the input.
    int null = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    close(null);
    alarm(SECONDS); // kept by exec: a script that waits ends
    execv(shell[0], shell);
    _exit(NOT_RECORDED);
  }
  int status;
  waitpid(child, &status, 0);
  kill(-child, SIGKILL);
  while (waitpid(-1, &status, WNOHANG) > 0) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_RECORDED) exit(NOT_RECORDED);
}

int main(int argc, char **argv) {
  const char *slash = strrchr(argv[0], '/');
  if (strcmp(slash ? slash + 1 : argv[0], "run") != 0) return record(argc, argv);
  if (argc < 3) return NOT_RECORDED;
  static char script[LONGEST];
  uint32_t length;
  int log = open(LOG, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  while (read_frame(script, &length)) {
    write_script(argv[1], script, length);
    run_script(argv + 2);
    uint32_t end = 0;
    if (write(log, &end, sizeof end) != sizeof end) return NOT_RECORDED;
  }
  return 0;
}
