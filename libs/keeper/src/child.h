#ifndef CHILD_H
#define CHILD_H

// For a fork of the keeper that runs a program or an operation of the user's. It loses the keeper's secrets and
// connection, handles signals by default, and has /dev/null as stdin, stdout and stderr.
void child_setup(void);

#endif
