// The quick way of bash: a loadable builtin that does what the loop of shell.sh does between two commands. It reports
// the end of a command, waits for the next line of the keeper, and runs that line's script. Whatever is out of the
// ordinary it leaves to the loop.
//
//   __sf_step CODE: CODE is the status of the last command. Sets __sf_rc to that of the last command that ran, and
//     __sf_line to a line that the loop has to handle, or __sf_back to 1 if it has to handle the end of that command.
//     Sets neither after a signal.
//   __sf_step mend: undoes what a command has made of the loop's variables: read-only, numbers, references, nothing.
//   __sf_step hold: blocks the signals that have a trap, before the shell executes itself again. The next one has no
//     traps at first, and such a signal would end it. __sf_step free: unblocks them, when the traps are set again.
//
// STEP-1. Bash executes no command between two ordinary commands. So a script can neither shadow, trace, trap nor
//     switch off what happens there.
// STEP-2. Two descriptors stay open, above those of the sealed files. They are compared before every use and are closed
//     on execution, so a command may close or overwrite them.
// STEP-3. A script keeps the output pipes of the one before when the keeper asks for it, and nothing else holds them.
#include "bash.h"
#include "kernel.h"

enum {
  TOKEN = 8,
  ORDINARY_LINE = TOKEN + 2,
  MOST_LINE = 512,
  MOST_DIRECTORY = 96,
  MOST_PATH = 128,
  MOST_NAME = 24,
  MOST_VALUE = 4096,
  SMALL_NUMBERS = 4096,
  SIGNALS = 64
};

typedef struct {
  unsigned long device, inode;
} File;

static struct {
  int shell; // pid; a subshell has another one
  int is_running;
  int first; // lowest number for a descriptor of the builtin, above those of the sealed files
  char directory[MOST_DIRECTORY], script[MOST_PATH];
  int go, report; // -1: not open
  File go_file, report_file;
  File streams[3]; // what a script has been given
  int flags[3]; // of these open files
  char token[TOKEN + 1];
  const char *exit_trap, *stop_trap; // those of the loop
} own = {.go = -1, .report = -1};

static int length_of(const char *text) {
  int n = 0;
  while (text[n]) n++;
  return n;
}

static int starts_with(const char *text, const char *start) {
  while (*start && *text == *start) text++, start++;
  return !*start;
}

// Appends a text. Returns the new end.
static char *append(char *to, const char *text) {
  while (*text) *to++ = *text++;
  *to = 0;
  return to;
}

static char *append_code(char *to, int code) {
  if (code >= 100) *to++ = '0' + code / 100 % 10;
  if (code >= 10) *to++ = '0' + code / 10 % 10;
  *to++ = '0' + code % 10;
  *to = 0;
  return to;
}

static int number_of(const char *text) {
  int number = 0;
  for (; *text >= '0' && *text <= '9'; text++) number = number * 10 + *text - '0';
  return number;
}

static int copy_variable(const char *name, char *to, int room) {
  const char *value = get_string_value(name);
  if (!value || !*value || length_of(value) >= room) return 0;
  append(to, value);
  return 1;
}

static File file_of(int fd) {
  struct stat status;
  if (fd < 0 || kernel_stat(fd, &status) < 0) return (File){0, 0};
  return (File){status.st_dev, status.st_ino};
}

static int is_file(int fd, File file) {
  const File found = file_of(fd);
  return file.inode && found.inode == file.inode && found.device == file.device;
}

static int open_in_directory(const char *name, int flags) {
  char path[MOST_PATH];
  append(append(append(path, own.directory), "/"), name);
  return kernel_open(path, flags);
}

// Opens a FIFO of the directory at a number that no script uses.
static int open_above(const char *name, int flags, File *file) {
  const int low = open_in_directory(name, flags | CLOSE_ON_EXEC);
  if (low < 0) return -1;
  const int high = kernel_copy_above(low, own.first);
  kernel_close(low);
  *file = file_of(high);
  return high < 0 ? -1 : high;
}

// Returns whether both FIFOs are open, and opens what a command has closed. A number that a command has given to a file
// of its own stays that file's.
static int hold_fifos(void) {
  if (!is_file(own.go, own.go_file)) own.go = open_above("go", READ_ONLY, &own.go_file);
  if (!is_file(own.report, own.report_file)) own.report = open_above("report", WRITE_ONLY, &own.report_file);
  return own.go >= 0 && own.report >= 0;
}

// Closes the FIFOs, because the keeper may have made others.
static void forget_fifos(void) {
  if (is_file(own.go, own.go_file)) kernel_close(own.go);
  if (is_file(own.report, own.report_file)) kernel_close(own.report);
  own.go = own.report = -1;
}

// Lets go of the pipes. What bash writes between two commands goes to the keeper, which reads over it.
static void release_streams(void) {
  kernel_copy(own.go, 0);
  kernel_copy(own.report, 1);
  kernel_copy(own.report, 2);
  for (int i = 0; i < 3; i++) own.streams[i] = (File){0, 0};
}

static int give_stream(int number, int fd) {
  if (fd < 0) return 0;
  if (fd != number) {
    kernel_copy(fd, number);
    kernel_close(fd);
  }
  own.streams[number] = file_of(number);
  own.flags[number] = kernel_flags(number);
  return own.streams[number].inode != 0;
}

static int give_streams(void) {
  return give_stream(0, kernel_open("/dev/null", READ_ONLY)) &&
         give_stream(1, open_in_directory("stdout", WRITE_ONLY)) &&
         give_stream(2, open_in_directory("stderr", WRITE_ONLY));
}

// Returns whether the next command can go on with the streams. A command may have opened the same file for something
// else (`exec 0>/dev/null`), and a program that is gone may have made it non-blocking.
static int holds_streams(void) {
  for (int i = 0; i < 3; i++)
    if (!is_file(i, own.streams[i]) || kernel_flags(i) != own.flags[i]) return 0;
  return 1;
}

// Returns whether the trap is the loop's: at the place where the loop's was, with its text.
static int is_loop_trap(int number, const char *trap, const char *text) {
  return trap_list[number] == trap && starts_with(trap, text);
}

// Returns the text of the loop's trap, or null when another one is set. The trap '' is a small number.
static const char *find_loop_trap(int number, const char *text) {
  const char *trap = signal_is_trapped(number) ? trap_list[number] : 0;
  return (unsigned long)trap > SMALL_NUMBERS && starts_with(trap, text) ? trap : 0;
}

static const char EXIT_TEXT[] = "\\__sf_leave ", STOP_TEXT[] = "\\__sf_stop ";

// Returns whether a script can be opened. A command may have lowered the limit for good, or use all numbers below it.
static int can_open_files(void) {
  const int fd = kernel_copy_above(own.report, 0);
  if (fd >= 0) kernel_close(fd);
  return fd >= 0;
}

// Sets a variable of the loop. First removes it, with all that `declare` may have made of it: read-only, a number, a
// reference. Otherwise bash would print an error, or leave the builtin in the middle of a command.
static void set_variable(const char *name, const char *value) {
  unbind_variable_noref(name);
  bind_variable(name, value, 0);
}

// Sets a variable of the loop to the value that it has, or to nothing.
static void mend_variable(const char *name) {
  char value[MOST_VALUE];
  const char *found = get_string_value(name);
  if (found && length_of(found) >= MOST_VALUE) return;
  append(value, found ? found : "");
  set_variable(name, value);
}

// Undoes what a command has made of the loop's variables. During a script it knows their values.
static void mend_variables(void) {
  static const char *const names[] = {
    "action", "after",   "back",   "busy",  "count",   "cwd",   "denied", "dir",    "errexit",   "extra",
    "fd",     "flags",   "held",   "input", "library", "line",  "loop",   "missed", "missing",   "name",
    "notes",  "odd",     "oldpwd", "open",  "parsed",  "rc",    "script", "seen",   "signalled", "status",
    "step",   "stopped", "token",  "trace", "wants",   "whole", "wrapped"};
  char name[MOST_NAME];
  const int has_way = get_string_value("__sf_step") != 0;
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    append(append(name, "__sf_"), names[i]);
    mend_variable(name);
  }
  if (!has_way) set_variable("__sf_step", ",step");
  if (!own.is_running) return;
  const char *busy = get_string_value("__sf_busy");
  if (!busy || !*busy) set_variable("__sf_busy", "1");
  set_variable("__sf_token", own.token);
}

// Returns whether the loop has to handle the end of the command that ran.
static int is_out_of_the_ordinary(void) {
  return terminating_signal || interrupt_state || exit_immediately_on_error || echo_command_at_execute ||
         read_but_dont_execute || number_of_args() || !is_loop_trap(EXIT_TRAP, own.exit_trap, EXIT_TEXT) ||
         !is_loop_trap(URGENT, own.stop_trap, STOP_TEXT) || signal_is_trapped(DEBUG_TRAP) ||
         signal_is_trapped(ERROR_TRAP) || signal_is_trapped(RETURN_TRAP) || !can_open_files();
}

// Runs a script at the top level. Returns its status.
static int run(int code) {
  const int end = length_of(own.script);
  own.script[end] = own.token[TOKEN - 1];
  own.script[end + 1] = 0;
  last_command_exit_value = code; // the script's first `$?`
  own.is_running = 1;
  set_variable("__sf_token", own.token);
  set_variable("__sf_busy", "1");
  code = source_file(own.script, 0);
  pending_traps[URGENT] = 0; // it came too late for this command
  if (trapped_signal_received) run_pending_traps();
  own.is_running = 0;
  own.script[end] = 0;
  breaking = continuing = 0; // as at the end of a file
  reap_dead_jobs();
  return code & 0xff;
}

// Returns 0 when the keeper cannot be told.
static int report(int code, int is_held) {
  char line[TOKEN + 32], *end = append(append(line, own.token), " ");
  end = append(append_code(end, code), is_held ? " step,held\n" : " step\n");
  long n;
  while ((n = kernel_write(own.report, line, end - line)) == -INTERRUPTED) continue;
  return n == end - line;
}

// Reads the keeper's next line, without its end. Returns its length, or 0 after a signal and when the FIFO is gone. An
// ordinary line is one read. All others are longer, and no more than one is read: the next may be for the loop.
static int read_line(char *line) {
  long n = kernel_read(own.go, line, ORDINARY_LINE);
  pending_traps[URGENT] = 0; // it was for the command before, or the keeper sends it again
  if (n <= 0) return 0;
  while (line[n - 1] != '\n') {
    if (n == MOST_LINE || kernel_read(own.go, line + n, 1) != 1) return 0;
    n++;
  }
  line[n - 1] = 0;
  return n - 1;
}

// Tells the loop whether a command has disabled a builtin that the loop needs.
static void look_for_builtins(void) {
  static const char *const names[] = {"command", "alias",  "compgen", "declare", "eval",   "exec",
                                      "exit",    "export", "printf",  "read",    "return", "set",
                                      "shopt",   "test",   "trap",    "true",    "unset",  "."};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (!find_shell_builtin(names[i])) set_variable("__sf_missing", "1");
}

static int leave_to_loop(int code, const char *variable, const char *value) {
  char text[4];
  release_streams();
  forget_fifos();
  mend_variables();
  append_code(text, code);
  set_variable("__sf_rc", text);
  look_for_builtins();
  if (variable) set_variable(variable, value);
  return 0;
}

// An ordinary line is a run token and what to do with the pipes: to open them, to open and keep them, or to go on with
// the kept ones.
static int is_ordinary(const char *line, int n) {
  return n == TOKEN + 1 && (line[TOKEN] == '.' || line[TOKEN] == ';' || line[TOKEN] == ',');
}

// Ends a shell that has taken a line and can neither run it nor report its end: the keeper starts the next one.
static int give_up(void) {
  kernel_kill(own.shell, KILL);
  return USAGE_ERROR;
}

static int steps(int code) {
  char line[MOST_LINE];
  for (;;) {
    const int n = read_line(line);
    if (!is_ordinary(line, n)) return leave_to_loop(code, n ? "__sf_line" : 0, line);
    const char mark = line[TOKEN];
    line[TOKEN] = 0;
    append(own.token, line);
    // A line that another process has written may name pipes that the shell has let go of.
    if ((mark != ',' || !own.streams[1].inode) && !give_streams()) return give_up();
    const int last_pid = last_made_pid;
    code = run(code);
    const int has_fifos = hold_fifos();
    const int is_held = mark != '.' && last_made_pid == last_pid && holds_streams();
    if (!is_held) release_streams();
    if (!has_fifos || is_out_of_the_ordinary()) return leave_to_loop(code, "__sf_back", "1");
    set_variable("__sf_token", "");
    set_variable("__sf_busy", "");
    if (!report(code, is_held)) return give_up();
  }
}

// Without the library the next shell could not unblock them.
static void hold_signals(void) {
  unsigned long trapped = 0;
  for (int signal = 1; signal <= SIGNALS; signal++)
    if (signal != URGENT && signal_is_trapped(signal)) trapped |= 1UL << (signal - 1);
  if (file_of(own.first - 1).inode) kernel_mask(BLOCK, &trapped);
}

static void free_signals(void) {
  top_level_mask = 0; // the shell began with the blocked ones
  kernel_mask(SET_MASK, &top_level_mask);
}

static int step(WordList *arguments) {
  const char *busy = get_string_value("__sf_busy");
  if (!arguments || kernel_pid() != own.shell) return USAGE_ERROR;
  const char *what = arguments->word->text;
  if (starts_with(what, "mend")) mend_variables();
  if (starts_with(what, "hold")) hold_signals();
  if (starts_with(what, "free")) free_signals();
  if (*what < '0' || *what > '9') return 0;
  if (own.is_running || (busy && *busy)) return USAGE_ERROR;
  const int code = number_of(what) & 0xff;
  own.exit_trap = find_loop_trap(EXIT_TRAP, EXIT_TEXT);
  own.stop_trap = find_loop_trap(URGENT, STOP_TEXT);
  if (!own.exit_trap || !own.stop_trap || !hold_fifos()) return leave_to_loop(code, 0, 0);
  return steps(code);
}

// Called by bash when the builtin has been loaded, before any code of the user's. Returns 0 to refuse.
__attribute__((visibility("default"))) int __sf_step_builtin_load(const char *name) {
  (void)name;
  static const char descriptors[] = "/proc/self/fd/";
  char library[MOST_PATH];
  own.shell = kernel_pid();
  if (!copy_variable("__sf_library", library, sizeof library) || !starts_with(library, descriptors)) return 0;
  own.first = number_of(library + length_of(descriptors)) + 1;
  return copy_variable("__sf_dir", own.directory, sizeof own.directory) &&
         copy_variable("__sf_script", own.script, sizeof own.script - 2);
}

static const char *const long_text[] = {"Runs the next commands of the session. Not for scripts.", 0};
__attribute__((visibility("default"))) Builtin __sf_step_struct = {
  .name = "__sf_step",
  .function = step,
  .flags = BUILTIN_ENABLED,
  .long_text = long_text,
  .short_text = "__sf_step code",
};
