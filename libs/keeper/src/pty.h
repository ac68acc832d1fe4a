// A pseudo-terminal with a shell at it: the session's shell program, interactive, where the session's shell is at that
// moment.
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
// Starts a shell at a new terminal. Returns its pid, and in `fd` the keeper's side of the terminal, which does not
// block; or 0, with the reason in `problem`.
pid_t pty_spawn(const Opening *opening, int *fd, char *problem, size_t size);
void pty_set_size(int fd, uint32_t rows, uint32_t columns);

#endif
