#ifndef CHILD_H
#define CHILD_H

// For a fork of the keeper that becomes something of the user's: the shell, a check, a file operation. It forgets the keeper's
// secrets and connection, takes signals as usual, and has nothing on its standard descriptors.
void child_setup(void);

#endif
