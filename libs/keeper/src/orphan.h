// The end of a keeper that no worker owns any more, where nothing outside of its container would end it.
#ifndef ORPHAN_H
#define ORPHAN_H

// Takes SF_UNCLAIMED_MS out of the environment. Returns 0 if it is not a number.
int orphan_open(void);
// Ends the keeper in order when no frame of an owner has come for that time. Returns the ms until the next call, or -1.
int orphan_tick(void);

#endif
