#include "clocks.h"
#include "clock.h"
#include "lanes.h"

enum { SILENT_MS = 6000 };

static uint32_t wall, no_output;
static uint64_t counted_at, run_ms, unconfirmed_ms, heard_at_ms, heard_bytes;
static int storage_is_away;

void clocks_set(uint32_t wall_ms, uint32_t no_output_ms) {
  wall = wall_ms;
  no_output = no_output_ms;
  clocks_start();
}

void clocks_start(void) {
  counted_at = now_ms();
  run_ms = unconfirmed_ms = heard_at_ms = heard_bytes = 0;
}

void clocks_count(void) {
  const uint64_t now = now_ms(), passed = now - counted_at;
  counted_at = now;
  if (storage_is_away) return;
  if (lanes_are_full()) unconfirmed_ms += passed;
  else run_ms += passed;
}

uint64_t clocks_run_ms(void) { return run_ms; }

void clocks_storage(int is_away) {
  clocks_count();
  storage_is_away = is_away;
}

void clocks_confirm(void) {
  clocks_count();
  if (unconfirmed_ms < SILENT_MS) run_ms += unconfirmed_ms;
  unconfirmed_ms = 0;
}

void clocks_forget(void) {
  clocks_count();
  unconfirmed_ms = 0;
  storage_is_away = 0;
}

enum Alarm clocks_alarm(int *wake) {
  const uint64_t heard = lane_received(0) + lane_received(1);
  if (heard != heard_bytes || lanes_are_full()) heard_at_ms = run_ms;
  heard_bytes = heard;
  uint64_t next = UINT64_MAX;
  if (wall) next = wall;
  if (no_output && heard_at_ms + no_output < next) next = heard_at_ms + no_output;
  const int stand_still = storage_is_away || lanes_are_full(); // what starts them again is a frame
  *wake = next == UINT64_MAX || stand_still ? -1 : next > run_ms ? (int)(next - run_ms) : 0;
  if (wall && run_ms >= wall) return WALL_ALARM;
  return no_output && run_ms >= heard_at_ms + no_output ? NO_OUTPUT_ALARM : NO_ALARM;
}
