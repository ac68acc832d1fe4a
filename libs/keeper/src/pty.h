// A pseudo-terminal with an interactive shell. It runs the same program as the session's shell, in the directory where
// that shell is now.
#ifndef PTY_H
#define PTY_H
#include "wire.h"
#include <sys/types.h>

typedef struct {
  uint32_t rows, columns, env_bytes;
  const uint8_t *env; // NAME=value\0 …
} Opening;

// Reads the payload of TERMINAL_OPEN; `env` points into it. Returns 0 when it is not valid.
int opening_parse(Cursor *cursor, Opening *opening);
// Starts a shell at a new terminal. Returns its pid and `fd`, the keeper's non-blocking side, or 0 and `problem`.
pid_t pty_spawn(const Opening *opening, int *fd, char *problem, size_t size);
void pty_set_size(int fd, uint32_t rows, uint32_t columns);

#endif
