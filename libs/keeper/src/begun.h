// The ids of the entries that began here, so that none begins twice (invariant 3). The last 65,536 are kept.
#ifndef BEGUN_H
#define BEGUN_H
#include <stdint.h>

// Returns 0 when there is no memory for the list.
int begun_open(void);
int begun_has(const uint8_t *id);
void begun_add(const uint8_t *id);
uint32_t begun_count(void);

#endif
