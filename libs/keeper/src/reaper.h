#ifndef REAPER_H
#define REAPER_H

// Collects the children that have ended, and tells whoever waits for one of them.
void reap_children(void);

#endif
