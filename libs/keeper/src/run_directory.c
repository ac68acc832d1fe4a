#define _GNU_SOURCE
#include "run_directory.h"
#include "free_path.h"
#include "log.h"
#include "off_limits.h"
#include "sealed.h"
#include "text.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "shell_builtin.h" // generated from the builtin: static const unsigned char SHELL_BUILTIN[]
#include "shell_script.h"  // generated from shell.sh: static const char SHELL_SCRIPT[]

enum { SETTLED_MS = 50 };
enum { ENOUGH_BYTES = 5 << 20, ENOUGH_FILES = 64 }; // for the largest command and for the state of the shell

static const char *directory;
static int descriptor = -1;
static struct timespec looked_at, confirmed_at; // times of the directory's last change; 0: too recent to compare
static int is_unchanged;

void run_directory_open(const char *path) {
  directory = path;
  off_limits_open(path);
  descriptor = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); // on failure every file is checked every time
}

// Compares the directory's time of change, which no process can set. It has the resolution of the kernel's clock tick,
// so a recent time may hide a second change.
void run_directory_look(void) {
  struct stat status;
  struct timespec now;
  is_unchanged = 0;
  looked_at = (struct timespec){0};
  if (descriptor < 0 || fstat(descriptor, &status) || !status.st_nlink) return;
  looked_at = status.st_ctim;
  is_unchanged = looked_at.tv_sec == confirmed_at.tv_sec && looked_at.tv_nsec == confirmed_at.tv_nsec;
  if (is_unchanged) return;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  const int64_t age_ms = (now.tv_sec - looked_at.tv_sec) * 1000 + (now.tv_nsec - looked_at.tv_nsec) / 1000000;
  if (age_ms < SETTLED_MS) looked_at = (struct timespec){0};
}

void run_directory_confirm(void) { confirmed_at = looked_at; }

void run_directory_distrust(void) {
  confirmed_at = (struct timespec){0};
  is_unchanged = 0;
}

int run_directory_is_unchanged(void) { return is_unchanged; }
const char *run_directory_path(void) { return directory; }

const char *path_of(const char *name) {
  static char path[160];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

int run_directory_has_fifo(const char *path, ino_t inode) {
  struct stat status;
  return !lstat(path, &status) && status.st_ino == inode && status.st_mode == (S_IFIFO | 0600);
}

int run_directory_fifo(const char *name, int fd) {
  struct stat status;
  if (fd >= 0 && !fstat(fd, &status) && run_directory_has_fifo(path_of(name), status.st_ino)) return fd;
  free_path(path_of(name));
  if (mkfifo(path_of(name), 0600)) log_failure("mkfifo");
  const int made = open(path_of(name), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (made < 0) log_failure("opening a FIFO of the directory");
  if (fd >= 0) close(fd); // only now, so that the new one has another descriptor
  return made;
}

int run_directory_write(const char *name, const void *bytes, size_t n, const char *end) {
  Text text;
  text_open(&text, path_of(name));
  text_add(&text, bytes, n);
  text_add_string(&text, end);
  return text_close(&text);
}

// Makes the files that the shell writes. Under the user's umask, the shell might be unable to read its own files.
static void make_scratch(void) {
  static const char *const NAMES[] = {"state", "options", "aliases", "exported", "old", "names"};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) run_directory_write(NAMES[i], "", 0, "");
}

static void add_arguments(Text *text, char *const *arguments) {
  for (char *const *argument = arguments; *argument; argument++) {
    text_add_string(text, " ");
    text_quote(text, *argument, strlen(*argument));
  }
  text_add_string(text, " \"$@\"");
}

void run_directory_write_builtin(void) { sealed_put_builtin(SHELL_BUILTIN, sizeof SHELL_BUILTIN); }

int run_directory_write_loop(char *const *arguments, int has_saved_state) {
  if (!has_saved_state) {
    make_scratch();
    run_directory_write("hooks", "", 0, "");
  }
  Text text;
  char where[224];
  text_collect(&text);
  text_add_string(&text, "__sf_place() {\n  __sf_dir=");
  text_quote(&text, directory, strlen(directory));
  snprintf(where, sizeof where,
           "\n  __sf_fd=/proc/self/fd/ __sf_script=/proc/self/fd/%d __sf_loop=/proc/self/fd/%d "
           "__sf_library=/proc/self/fd/%d\n  command return \"$1\" || return \"$1\"\n}",
           sealed_first() / 10, sealed_loop(), sealed_builtin());
  text_add_string(&text, where);
  // bash empties the environment first, because a variable may be too long to start a process with.
  text_add_string(&text, "\n__sf_again() {\n  case ${BASH_VERSION-} in\n    ?*) command exec -c");
  add_arguments(&text, arguments);
  text_add_string(&text, " ;;\n    *) command exec");
  add_arguments(&text, arguments);
  text_add_string(&text, " ;;\n  esac\n}\n");
  text_add(&text, SHELL_SCRIPT, sizeof SHELL_SCRIPT - 1);
  return text_seal_loop(&text);
}

// Puts a text that is only parsed. Its first line keeps the rest from running; if `set` fails, the line ends the shell.
static int put_parsed(const char *before, const uint8_t *script, size_t n, const char *after) {
  Text text;
  text_collect(&text);
  text_add_string(&text, "\\command set -n || ${__sf_none:?}\n");
  text_add_string(&text, before);
  text_add(&text, script, n);
  text_add_string(&text, after);
  return text_seal(&text);
}

// Returns the first line of a script that begins with `exit`, or null.
static const uint8_t *find_exit(const uint8_t *script, size_t n) {
  static const char EXIT_LINE[] = "\nexit";
  const size_t length = sizeof EXIT_LINE - 1;
  for (const uint8_t *at = script; (at = memmem(at, n - (at - script), EXIT_LINE, length)); at += length) {
    const uint8_t *after = at + length;
    if (after == script + n || memchr(" \t\n;", *after, 4)) return at;
  }
  return 0;
}

int run_directory_write_check(const Command *command, Texts *texts) {
  const uint8_t *script = command->script, *exit_line = find_exit(script, command->script_bytes);
  if (exit_line) texts->early = put_parsed("{ :\n", script, exit_line - script, "\n}\n");
  texts->check = put_parsed("", script, command->script_bytes, "\n)\n");
  return texts->check > 0 && texts->early >= 0;
}

static int is_name(const uint8_t *name, size_t n) {
  if (!n || (name[0] >= '0' && name[0] <= '9')) return 0;
  for (size_t i = 0; i < n; i++) {
    const uint8_t c = name[i];
    if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z')) return 0;
  }
  return 1;
}

static int add_env(Text *before, Text *after, const uint8_t *env, size_t n) {
  for (const uint8_t *pair = env, *end = env + n, *stop; pair < end; pair = stop + 1) {
    stop = memchr(pair, 0, end - pair);
    const uint8_t *equals = stop ? memchr(pair, '=', stop - pair) : 0;
    if (!equals || !is_name(pair, equals - pair)) return 0;
    text_add_string(before, "__sf_give ");
    text_add(before, pair, equals - pair);
    text_add_string(before, " ");
    text_quote(before, equals + 1, stop - equals - 1);
    text_add_string(before, "\n");
    text_add_string(after, "__sf_take ");
    text_add(after, pair, equals - pair);
    text_add_string(after, "\n");
  }
  return 1;
}

// Writes the texts around a command: `before` sets env and cwd, and fails if the cwd is wrong; `after` restores both.
static enum Refusal put_env_and_cwd(const Command *command, Texts *texts) {
  Text before, after;
  text_collect(&before);
  text_collect(&after);
  text_add_string(&before, "case ${BASH_VERSION-} in '') command export -p >|\"$__sf_dir/exported\" ;; esac\n");
  const int valid = add_env(&before, &after, command->env, command->env_bytes);
  if (command->cwd_bytes) {
    text_add_string(&before, "__sf_enter ");
    text_quote(&before, command->cwd, command->cwd_bytes);
    text_add_string(&before, "\n");
    text_add_string(&after, "__sf_go_back\n");
  }
  texts->before = text_seal(&before);
  texts->after = text_seal(&after);
  return !valid ? REFUSED_INVALID : texts->before > 0 && texts->after > 0 ? 0 : REFUSED_NO_SPACE;
}

static int is_ours(const char *path) {
  static const char *const NAMES[] = {"go", "report", "stdout", "stderr", "exit", "hooks", "input"};
  const char *name = path + strlen(directory) + 1;
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
    if (!strcmp(name, NAMES[i])) return 1;
  return 0;
}

static int remove_foreign(const char *path, const struct stat *status, int type, struct FTW *at) {
  (void)status, (void)type;
  if (at->level == 0 || (at->level == 1 && is_ours(path))) return 0;
  remove(path); // one that cannot be removed stays: the next write then fails, and START is refused
  return 0;
}

int run_directory_make_room(void) {
  struct statfs space;
  const int failed = descriptor < 0 ? statfs(directory, &space) : fstatfs(descriptor, &space);
  if (failed) return 0; // the user has removed the directory: the write that follows fails
  const int is_enough = (uint64_t)space.f_bavail * space.f_bsize >= ENOUGH_BYTES && space.f_ffree >= ENOUGH_FILES;
  if (is_enough) return 0;
  if (space.f_blocks * space.f_bsize < 2 * ENOUGH_BYTES) return 0; // the whole file system is small
  is_unchanged = 0; // even a file that is held open loses its name
  if (nftw(directory, remove_foreign, 16, FTW_DEPTH | FTW_PHYS)) log_failure("clearing the directory");
  make_scratch();
  return 1;
}

enum Refusal run_directory_write_command(const Command *command, Texts *texts) {
  *texts = (Texts){0};
  if (memchr(command->cwd, 0, command->cwd_bytes)) return REFUSED_INVALID;
  sealed_clear();
  texts->script = sealed_put_command(command->script, command->script_bytes);
  if (texts->script < 0) return REFUSED_NO_SPACE;
  const int has_input = command->input_kind == GIVEN_STDIN;
  if (has_input && !run_directory_write("input", command->input, command->input_bytes, "")) return REFUSED_NO_SPACE;
  return command->env_bytes || command->cwd_bytes ? put_env_and_cwd(command, texts) : 0;
}
