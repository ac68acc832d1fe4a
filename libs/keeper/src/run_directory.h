// The keeper's directory: files and FIFOs that pass data between keeper and shell. Texts of a command are in sealed
// files (sealed.h). The container's user may remove or replace anything here; the keeper then makes it again, or the
// shell is lost.
#ifndef RUN_DIRECTORY_H
#define RUN_DIRECTORY_H
#include "start.h"
#include "wire.h"
#include <sys/types.h>

void run_directory_open(const char *path);
const char *run_directory_path(void);
// Called before an entry begins: checks whether any name in the directory has changed.
void run_directory_look(void);
// Returns whether run_directory_look found that no name was made, removed or replaced since run_directory_confirm.
int run_directory_is_unchanged(void);
// Called when all names in the directory have been checked.
void run_directory_confirm(void);
// Makes the directory count as changed, whatever its time of change is. Called when a shell could not continue.
void run_directory_distrust(void);
// Returns whether the FIFO with this inode is still there, and the shell may open it.
int run_directory_has_fifo(const char *path, ino_t inode);
// Returns the path of a file in the directory, valid until the next call.
const char *path_of(const char *name);
// Opens a FIFO for both directions, so that it never ends. Returns `fd` if that is still this FIFO, else a new
// descriptor, or -1 on failure.
int run_directory_fifo(const char *name, int fd);

// If there is hardly any room left, removes the files that are not the keeper's, and returns 1.
int run_directory_make_room(void);
// Writes a file. Returns 0 when it could not be written whole.
int run_directory_write(const char *name, const void *bytes, size_t n, const char *end);
// Writes the builtin that bash loads. Called once.
void run_directory_write_builtin(void);
// Writes the shell's loop with the arguments with which it re-executes itself. Returns 0 on failure.
int run_directory_write_loop(char *const *arguments, int has_saved_state);
// Descriptors of a command's texts. 0 stands for a text that the command does not need.
typedef struct {
  int script;
  int before, after; // cwd and env
  int check, early; // what is parsed beforehand
} Texts;

// Writes the script, its input, and the texts around it. Returns 0, or the reason of a refusal.
enum Refusal run_directory_write_command(const Command *command, Texts *texts);
// Writes the text `check`, with which the shell only parses the script, and `early`, with what comes before a line that
// begins with `exit`. Returns 0 without room.
int run_directory_write_check(const Command *command, Texts *texts);

#endif
