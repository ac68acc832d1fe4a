// The keeper's own folder: files and FIFOs through which keeper and shell pass data to each other. The texts that the
// shell sources for a command are not in it, but in sealed files (sealed.h). All of the folder belongs to
// the container's user, who may remove or replace any of it; the keeper then makes it again, or the session's shell is
// lost.
#ifndef FOLDER_H
#define FOLDER_H
#include "start.h"
#include "wire.h"
#include <sys/types.h>

void folder_open(const char *path);
const char *folder_path(void);
// Before an entry begins.
void folder_look(void);
// At that moment no name in the folder had been made, removed or replaced since they were all right (folder_confirm).
int folder_is_unchanged(void);
// All of them have been looked at since.
void folder_confirm(void);
// A shell could not go on: nothing in the folder counts as unchanged, also where its own time says so.
void folder_distrust(void);
// Is the FIFO with this number still there, and may the shell open it?
int folder_has_fifo(const char *path, ino_t inode);
// Path of a file in it, valid until the next call.
const char *path_of(const char *name);
// A FIFO opened for both directions, so that it is never at its end. Returns the same descriptor while that is still
// the one in the folder, and -1 when none could be made.
int folder_fifo(const char *name, int fd);

// Removes files that are not the keeper's when there is hardly any room left. 1 when it has done so.
int folder_make_room(void);
// 0 when it could not be written whole.
int folder_write(const char *name, const void *bytes, size_t n, const char *end);
// The shell's loop; the arguments are those with which it re-executes itself. 0 when it could not be written whole.
int folder_write_loop(char *const *arguments, int has_saved_state);
// Descriptors of the texts of a command; 0: none.
typedef struct {
  int script;
  int before, after; // cwd and env
  int check, early; // what is parsed beforehand
} Texts;

// The script, its input, and what surrounds it. 0, or the reason of a refusal.
enum Refusal folder_write_command(const Command *command, Texts *texts);
// The texts `check` and, if the script has a line that begins with `exit`, `early`: the script, or what comes before
// that line, for the shell to parse without running it. 0 when there is no room for them.
int folder_write_check(const Command *command, Texts *texts);

#endif
