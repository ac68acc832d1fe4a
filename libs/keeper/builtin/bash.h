// What the builtin uses of bash: names that bash exports to the builtins it loads. Declared here, because no header of
// bash is included. They are the same in the versions that shell.sh lists (scripts/bash-versions.ts).
#ifndef BASH_H
#define BASH_H

typedef struct {
  char *text;
  int flags;
} Word;

typedef struct WordList {
  struct WordList *next;
  Word *word;
} WordList;

typedef struct {
  const char *name;
  int (*function)(WordList *);
  int flags;
  const char *const *long_text;
  const char *short_text;
  char *handle;
} Builtin;

enum { BUILTIN_ENABLED = 1, USAGE_ERROR = 2 };
// Numbers of traps: signals have their own, and the others follow the last signal.
enum { EXIT_TRAP = 0, URGENT = 23, DEBUG_TRAP = 65, ERROR_TRAP = 66, RETURN_TRAP = 67 };

extern char *trap_list[];   // texts of the traps
extern int pending_traps[]; // how often a trapped signal has come since its trap ran
extern int trapped_signal_received;
extern unsigned long top_level_mask; // blocked signals, which bash gives to its children
extern volatile int terminating_signal, interrupt_state;
extern int exit_immediately_on_error, echo_command_at_execute, read_but_dont_execute; // set -e, set -x, set -n
extern int breaking, continuing;                                                      // loops that are being left
extern int last_command_exit_value;
extern int last_made_pid; // the process that the shell has forked last

extern int signal_is_trapped(int signal);
extern void run_pending_traps(void);
extern void reap_dead_jobs(void);
extern int number_of_args(void);
extern void *find_shell_builtin(const char *name); // null: disabled
extern char *get_string_value(const char *name);
extern void *bind_variable(const char *name, const char *value, int flags);
extern int unbind_variable_noref(const char *name); // also if it is read-only
extern int source_file(const char *path, int has_arguments);

#endif
