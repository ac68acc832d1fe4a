#ifndef CHILD_H
#define CHILD_H

// For a fork of the keeper that runs an operation of the user's. It loses the keeper's secrets and connection, handles
// signals by default, and has /dev/null as stdin, stdout and stderr. It is a copy of the keeper: like the keeper, other
// processes of its user can neither trace it nor read its memory.
void child_setup(void);

// For one that then executes a program: when memory is short, it is killed before the keeper.
void child_setup_program(void);

#endif
