#ifndef HELLO_H
#define HELLO_H

// Puts a HELLO on the link: the state of the keeper, and the token that proves it to the worker.
void hello_put(void);

#endif
