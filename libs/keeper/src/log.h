// The keeper's own log: a ring buffer of its last messages, for the worker's log, because stderr is not kept.
//
// KEEPERLOG-1. A message holds texts of the keeper and of the system, never a script, its output, a variable or a
// secret.
#ifndef LOG_H
#define LOG_H
#include <stddef.h>
#include <stdint.h>

// Logs that a system call failed: the text and the description of errno. Leaves errno as it was.
void log_failure(const char *what);
void log_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Returns the oldest unsent message, or null. `number` counts all messages from 1, so a gap shows overwritten ones.
const char *log_unsent(uint32_t *number);
// Marks the message of the last log_unsent as sent.
void log_sent(void);

#endif
