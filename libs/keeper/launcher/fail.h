#ifndef FAIL_H
#define FAIL_H

// Reports the failed step, with the description of errno where that is set, and ends this process.
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

// Sets where failures are reported, by default stderr. In the child it is a pipe, so that the parent receives every
// failure before the program runs.
void report_failures_to(int fd);

#endif
