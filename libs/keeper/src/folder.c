#define _GNU_SOURCE
#include "folder.h"
#include "text.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shell_script.h" // generated from shell.sh: static const char SHELL_SCRIPT[]

static const char *folder;

void folder_open(const char *path) { folder = path; }
const char *folder_path(void) { return folder; }

const char *path_of(const char *name) {
  static char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

int folder_fifo(const char *name, int fd) {
  struct stat here, there;
  if (fd >= 0 && !fstat(fd, &here) && !stat(path_of(name), &there) && here.st_ino == there.st_ino) return fd;
  unlink(path_of(name));
  mkfifo(path_of(name), 0600);
  const int made = open(path_of(name), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) close(fd); // only now, so that the new one has another number
  return made;
}

int folder_write(const char *name, const void *bytes, size_t n, const char *end) {
  Text text;
  text_open(&text, path_of(name));
  text_add(&text, bytes, n);
  text_say(&text, end);
  return text_close(&text);
}

void folder_write_loop(char *const *arguments) {
  Text text;
  text_open(&text, path_of("loop"));
  text_say(&text, "__sf_dir=");
  text_quote(&text, folder, strlen(folder));
  text_say(&text, "\n__sf_again() {\n  command exec ${BASH_VERSION:+-c}");
  for (char *const *argument = arguments; *argument; argument++) {
    text_say(&text, " ");
    text_quote(&text, *argument, strlen(*argument));
  }
  text_say(&text, " \"$@\"\n}\n");
  text_add(&text, SHELL_SCRIPT, sizeof SHELL_SCRIPT - 1);
  text_close(&text);
}

int folder_write_check(void) {
  Text text;
  text_open(&text, path_of("check"));
  const int from = open(path_of("command"), O_RDONLY | O_CLOEXEC);
  char bytes[4096];
  for (ssize_t n; from >= 0 && (n = read(from, bytes, sizeof bytes)) > 0;) text_add(&text, bytes, n);
  if (from >= 0) close(from);
  text_say(&text, "\n)\n");
  return text_close(&text);
}

static int is_name(const uint8_t *name, size_t n) {
  if (!n || (name[0] >= '0' && name[0] <= '9')) return 0;
  for (size_t i = 0; i < n; i++) {
    const uint8_t c = name[i];
    if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z')) return 0;
  }
  return 1;
}

static void say_name(Text *text, const char *words, const uint8_t *name, size_t n) {
  text_say(text, words);
  text_add(text, name, n);
}

// In `before` the variable remembers what it was and takes its value for this command; in `after` it goes back.
static void say_variable(Text *before, Text *after, const uint8_t *name, size_t n, const uint8_t *value, size_t value_bytes) {
  say_name(before, "__sf_had_", name, n);
  say_name(before, "=${", name, n);
  say_name(before, "+set} __sf_old_", name, n);
  say_name(before, "=${", name, n);
  say_name(before, "-}\n! __sf_exported ", name, n);
  say_name(before, " || __sf_had_", name, n);
  say_name(before, "=exported\ncommand export ", name, n);
  text_say(before, "=");
  text_quote(before, value, value_bytes);
  text_say(before, "\n");
  say_name(after, "case ${__sf_had_", name, n);
  say_name(after, "-} in\n  exported) command export ", name, n);
  say_name(after, "=\"$__sf_old_", name, n);
  say_name(after, "\" ;;\n  set) unset ", name, n);
  say_name(after, " && ", name, n);
  say_name(after, "=$__sf_old_", name, n);
  say_name(after, " ;;\n  *) unset ", name, n);
  say_name(after, " ;;\nesac\nunset __sf_had_", name, n);
  say_name(after, " __sf_old_", name, n);
  text_say(after, "\n");
}

static int say_env(Text *before, Text *after, const uint8_t *env, size_t n) {
  for (const uint8_t *pair = env, *end = env + n, *stop; pair < end; pair = stop + 1) {
    stop = memchr(pair, 0, end - pair);
    const uint8_t *equals = stop ? memchr(pair, '=', stop - pair) : 0;
    if (!equals || !is_name(pair, equals - pair)) return 0;
    say_variable(before, after, pair, equals - pair, equals + 1, stop - equals - 1);
  }
  return 1;
}

// Env and cwd of one command. `before` fails when the cwd cannot be entered.
static enum Refusal write_surroundings(const Command *command) {
  Text before, after;
  text_open(&before, path_of("before"));
  text_open(&after, path_of("after"));
  text_say(&before, "command export -p >|\"$__sf_dir/exported\"\n");
  const int valid = say_env(&before, &after, command->env, command->env_bytes);
  if (command->cwd_bytes) {
    text_say(&before, "__sf_cwd=$PWD __sf_oldpwd=${OLDPWD-}\nCDPATH= command cd -- ");
    text_quote(&before, command->cwd, command->cwd_bytes);
    text_say(&before, "\n");
    text_say(&after, "CDPATH= command cd -- \"$__sf_cwd\"\nOLDPWD=$__sf_oldpwd\nunset __sf_cwd __sf_oldpwd\n");
  } else {
    text_say(&before, ":\n");
  }
  text_say(&after, ":\n");
  const int written = text_close(&before) & text_close(&after);
  return !valid ? REFUSED_INVALID : written ? 0 : REFUSED_NO_SPACE;
}

int command_parse(Cursor *cursor, Command *command) {
  command->script_bytes = take_u32(cursor);
  command->cwd_bytes = take_u32(cursor);
  command->env_bytes = take_u32(cursor);
  command->input_kind = take_u32(cursor);
  command->script = take_bytes(cursor, command->script_bytes);
  command->cwd = take_bytes(cursor, command->cwd_bytes);
  command->env = take_bytes(cursor, command->env_bytes);
  command->input_bytes = cursor->left;
  command->input = take_bytes(cursor, cursor->left);
  return !cursor->bad && command->input_kind <= FED_STDIN && (command->input_kind == GIVEN_STDIN || !command->input_bytes);
}

enum Refusal folder_write_command(const Command *command) {
  if (memchr(command->cwd, 0, command->cwd_bytes)) return REFUSED_INVALID;
  if (!folder_write("command", command->script, command->script_bytes, "\n")) return REFUSED_NO_SPACE;
  if (command->input_kind == GIVEN_STDIN && !folder_write("input", command->input, command->input_bytes, "")) return REFUSED_NO_SPACE;
  return command->env_bytes || command->cwd_bytes ? write_surroundings(command) : 0;
}
