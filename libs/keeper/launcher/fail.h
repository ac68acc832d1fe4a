#ifndef FAIL_H
#define FAIL_H

// Reports the failed step, with the description of errno if errno is set, and ends this process.
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

// Sets the descriptor to which failures are reported, by default stderr. The child uses a pipe to the parent.
void report_failures_to(int fd);

#endif
