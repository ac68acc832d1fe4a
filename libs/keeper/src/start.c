#define _GNU_SOURCE
#include "start.h"

static int parse_command(Cursor *cursor, Command *command) {
  command->script_bytes = take_u32(cursor);
  command->cwd_bytes = take_u32(cursor);
  command->env_bytes = take_u32(cursor);
  command->input_kind = take_u32(cursor);
  command->script = take_bytes(cursor, command->script_bytes);
  command->cwd = take_bytes(cursor, command->cwd_bytes);
  command->env = take_bytes(cursor, command->env_bytes);
  command->input_bytes = cursor->left;
  command->input = take_bytes(cursor, cursor->left);
  if (cursor->bad || command->input_kind > OPEN_STDIN) return 0;
  return command->input_kind == GIVEN_STDIN || !command->input_bytes;
}

int start_parse(const Header *header, const uint8_t *payload, Start *start) {
  Cursor cursor = {.at = payload, .left = header->length};
  start->kind = header->flags;
  start->timeout_ms = take_u32(&cursor);
  start->no_output_timeout_ms = take_u32(&cursor);
  start->kill_grace_ms = take_u32(&cursor);
  if (cursor.bad) return 0;
  switch (header->flags) {
    case COMMAND_ENTRY: return parse_command(&cursor, &start->command);
    case RESTART_ENTRY: return 1;
    default: return 0;
  }
}
