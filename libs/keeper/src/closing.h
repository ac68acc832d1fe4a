// The orderly end of the keeper: the running entry first, then the shell with its EXIT trap, then all processes.
#ifndef CLOSING_H
#define CLOSING_H
#include <stdint.h>

void closing_begin(uint32_t termination_ms);
// Begins the end once no entry runs, for whoever kills this process later in any case.
void closing_begin_after_entry(uint32_t termination_ms);
// Ends this process when all is over or the time is up. Returns the ms until the next call, or -1 if none is due.
int closing_tick(void);

#endif
