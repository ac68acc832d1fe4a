#include "usage.h"
#include "cgroup.h"

static uint64_t began_at_us, ended_at_us;

void usage_begin(int continues) {
  if (!continues || !ended_at_us) began_at_us = cgroup_processor_us();
  else began_at_us = ended_at_us;
}

Usage usage_end(void) {
  const uint64_t now_us = cgroup_processor_us(), peak = cgroup_memory_peak();
  ended_at_us = now_us;
  if (!peak || !began_at_us || now_us < began_at_us) return (Usage){0};
  return (Usage){.is_known = 1, .processor_us = now_us - began_at_us, .memory_peak = peak};
}
