// The keeper's own folder: what the shell and the keeper hand to each other as files. All of it belongs to the container's user,
// who may remove or replace any of it; the keeper then makes it again, or the session's shell is lost.
#ifndef FOLDER_H
#define FOLDER_H
#include "wire.h"

// What a command reads: /dev/null, the bytes given with it, or what comes while it runs.
enum Stdin { NO_STDIN = 0, GIVEN_STDIN = 1, FED_STDIN = 2 };

typedef struct {
  const uint8_t *script, *cwd, *env, *input;
  uint32_t script_bytes, cwd_bytes, env_bytes, input_bytes;
  enum Stdin input_kind;
} Command;

// Reads the payload; what the command points to stays in it. 0 when it is not valid.
int command_parse(Cursor *cursor, Command *command);

void folder_open(const char *path);
const char *folder_path(void);
// Of a file in it. Good until the next call.
const char *path_of(const char *name);
// A FIFO opened for both directions, so that it is never at its end. The same descriptor, while it is still the one in the folder.
int folder_fifo(const char *name, int fd);

// Removes what is not the keeper's when there is hardly any room left. 1 when it has.
int folder_make_room(void);
// 0 when it could not be written whole.
int folder_write(const char *name, const void *bytes, size_t n, const char *end);
// The shell's loop; the arguments are those with which it re-executes itself.
void folder_write_loop(char *const *arguments);
// The script, its input, and the files `before` and `after`. 0, or why not.
enum Refusal folder_write_command(const Command *command);
// The script with something after its end that is a syntax error, unless the script swallows it.
int folder_write_check(void);

#endif
