#define _GNU_SOURCE
#include "folder.h"
#include "text.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "shell_script.h" // generated from shell.sh: static const char SHELL_SCRIPT[]

enum { ENOUGH_BYTES = 5 << 20, ENOUGH_FILES = 64 }; // for the largest command and for the state of the shell

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

// What the shell writes for itself. Made here, so that no umask of the user's keeps it from reading that again.
static void make_scratch(void) {
  static const char *const NAMES[] = {"state", "options", "aliases", "exported", "old", "names"};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) folder_write(NAMES[i], "", 0, "");
}

static void say_arguments(Text *text, char *const *arguments) {
  for (char *const *argument = arguments; *argument; argument++) {
    text_say(text, " ");
    text_quote(text, *argument, strlen(*argument));
  }
  text_say(text, " \"$@\"");
}

void folder_write_loop(char *const *arguments) {
  make_scratch();
  folder_write("hooks", "", 0, "");
  Text text;
  text_open(&text, path_of("loop"));
  text_say(&text, "__sf_dir=");
  text_quote(&text, folder, strlen(folder));
  // bash empties the environment first: a variable may be too long for any process to be started with.
  text_say(&text, "\n__sf_again() {\n  case ${BASH_VERSION-} in\n    ?*) command exec -c");
  say_arguments(&text, arguments);
  text_say(&text, " ;;\n    *) command exec");
  say_arguments(&text, arguments);
  text_say(&text, " ;;\n  esac\n}\n");
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

static int say_env(Text *before, Text *after, const uint8_t *env, size_t n) {
  for (const uint8_t *pair = env, *end = env + n, *stop; pair < end; pair = stop + 1) {
    stop = memchr(pair, 0, end - pair);
    const uint8_t *equals = stop ? memchr(pair, '=', stop - pair) : 0;
    if (!equals || !is_name(pair, equals - pair)) return 0;
    text_say(before, "__sf_give ");
    text_add(before, pair, equals - pair);
    text_say(before, " ");
    text_quote(before, equals + 1, stop - equals - 1);
    text_say(before, "\n");
    text_say(after, "__sf_take ");
    text_add(after, pair, equals - pair);
    text_say(after, "\n");
  }
  return 1;
}

// Env and cwd of one command. `before` fails when the cwd cannot be entered.
static enum Refusal write_surroundings(const Command *command) {
  Text before, after;
  text_open(&before, path_of("before"));
  text_open(&after, path_of("after"));
  text_say(&before, "case ${BASH_VERSION-} in '') command export -p >|\"$__sf_dir/exported\" ;; esac\n");
  const int valid = say_env(&before, &after, command->env, command->env_bytes);
  if (command->cwd_bytes) {
    text_say(&before, "__sf_enter ");
    text_quote(&before, command->cwd, command->cwd_bytes);
    text_say(&before, "\n");
    text_say(&after, "__sf_go_back\n");
  }
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

static int is_ours(const char *path) {
  static const char *const NAMES[] = {"go", "report", "stdout", "stderr", "loop", "exit", "hooks", "input"};
  const char *name = path + strlen(folder) + 1;
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
    if (!strcmp(name, NAMES[i])) return 1;
  return 0;
}

static int remove_foreign(const char *path, const struct stat *status, int type, struct FTW *at) {
  (void)status, (void)type;
  if (at->level == 0 || (at->level == 1 && is_ours(path))) return 0;
  remove(path);
  return 0;
}

int folder_make_room(void) {
  struct statvfs space;
  if (statvfs(folder, &space) || ((uint64_t)space.f_bavail * space.f_bsize >= ENOUGH_BYTES && space.f_favail >= ENOUGH_FILES)) return 0;
  if (space.f_blocks * space.f_bsize < 2 * ENOUGH_BYTES) return 0; // it is small by itself
  nftw(folder, remove_foreign, 16, FTW_DEPTH | FTW_PHYS);
  make_scratch();
  return 1;
}

enum Refusal folder_write_command(const Command *command) {
  if (memchr(command->cwd, 0, command->cwd_bytes)) return REFUSED_INVALID;
  if (!folder_write("command", command->script, command->script_bytes, "\n")) return REFUSED_NO_SPACE;
  if (command->input_kind == GIVEN_STDIN && !folder_write("input", command->input, command->input_bytes, "")) return REFUSED_NO_SPACE;
  return command->env_bytes || command->cwd_bytes ? write_surroundings(command) : 0;
}
