#ifndef CHILD_H
#define CHILD_H

// Prepares a fork of the keeper that does an operation for the user. The fork loses the keeper's secrets and
// connection, handles signals by default, and has /dev/null as stdin, stdout and stderr. It is a copy of the keeper:
// like the keeper, other processes of its user can neither trace it nor read its memory.
void child_setup(void);

// Prepares a fork that then executes a program: when memory is short, it is killed before the keeper.
void child_setup_program(void);

#endif
