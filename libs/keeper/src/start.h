// The fields of START. messages.ts writes them, and docs/keeper-protocol.md describes them.
#ifndef START_H
#define START_H
#include "wire.h"

// A command's stdin: /dev/null, the bytes in its START, or the bytes of INPUT frames while it runs.
enum Stdin { NO_STDIN = 0, GIVEN_STDIN = 1, OPEN_STDIN = 2 };

typedef struct {
  const uint8_t *script, *cwd, *env, *input; // they point into the payload
  uint32_t script_bytes, cwd_bytes, env_bytes, input_bytes;
  enum Stdin input_kind;
} Command;

typedef struct {
  enum EntryKind kind;
  uint32_t timeout_ms, no_output_timeout_ms, kill_grace_ms; // 0: no limit
  Command command; // of a COMMAND_ENTRY
} Start;

// Reads the payload of START. Returns 0 when the frame is not valid.
int start_parse(const Header *header, const uint8_t *payload, Start *start);

#endif
