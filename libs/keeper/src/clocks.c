#include "clocks.h"
#include "clock.h"
#include "output.h"

enum { SILENT_MS = 6000 };

static struct {
  uint32_t timeout_ms, no_output_timeout_ms;
  uint64_t counted_at;
  uint64_t run_ms, unconfirmed_ms; // unconfirmed_ms: time with a full ring buffer since the last frame
  uint64_t output_at_ms, output_bytes;
  int storage_is_away;
} own;

void clocks_set(uint32_t timeout_ms, uint32_t no_output_timeout_ms) {
  own.timeout_ms = timeout_ms;
  own.no_output_timeout_ms = no_output_timeout_ms;
  clocks_start();
}

void clocks_start(void) {
  own.counted_at = now_ms();
  own.run_ms = own.unconfirmed_ms = own.output_at_ms = own.output_bytes = 0;
}

void clocks_count(void) {
  const uint64_t now = now_ms(), passed = now - own.counted_at;
  own.counted_at = now;
  if (own.storage_is_away) return;
  if (output_is_full()) own.unconfirmed_ms += passed;
  else own.run_ms += passed;
}

void clocks_storage(int is_away) {
  clocks_count();
  own.storage_is_away = is_away;
}

void clocks_confirm(void) {
  clocks_count();
  if (own.unconfirmed_ms < SILENT_MS) own.run_ms += own.unconfirmed_ms;
  own.unconfirmed_ms = 0;
}

void clocks_forget(void) {
  clocks_count();
  own.unconfirmed_ms = 0;
  own.storage_is_away = 0;
}

enum Alarm clocks_alarm(int *wake) {
  const uint64_t bytes = output_received(0) + output_received(1);
  if (bytes != own.output_bytes || output_is_full()) own.output_at_ms = own.run_ms;
  own.output_bytes = bytes;
  const uint32_t wall = own.timeout_ms, no_output = own.no_output_timeout_ms;
  uint64_t next = UINT64_MAX;
  if (wall) next = wall;
  if (no_output && own.output_at_ms + no_output < next) next = own.output_at_ms + no_output;
  const int stand_still = own.storage_is_away || output_is_full(); // a frame starts the clocks again
  *wake = next == UINT64_MAX || stand_still ? -1 : next > own.run_ms ? (int)(next - own.run_ms) : 0;
  if (wall && own.run_ms >= wall) return WALL_ALARM;
  return no_output && own.run_ms >= own.output_at_ms + no_output ? NO_OUTPUT_ALARM : NO_ALARM;
}
