#ifndef CHILD_H
#define CHILD_H

// Prepares a fork of the keeper that does an operation for the user: drops its secrets and connection, resets signals,
// and opens /dev/null as stdin, stdout and stderr. Other processes cannot trace it or read its memory.
void child_setup(void);

// Prepares a fork that then executes a program: when memory is short, it is killed before the keeper.
void child_setup_program(void);

#endif
