// Feeds an open stdin with random frames and reads the pipe in random pieces, under the sanitizers. Byte n of the
// stream is a function of n, so every byte can be checked. usage: fuzz-input <seed> <milliseconds>
#define _GNU_SOURCE
#include "../src/clock.h"
#include "../src/events.h"
#include "../src/run_directory.h"
#include "../src/input.h"
#include "../src/link.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 2 << 20 };

static const uint8_t ID[ID_BYTES] = "an entry", OTHER[ID_BYTES] = "another";
static char path[64];
static uint64_t state, reported;
static int reported_closed;

// The functions of other files that input.c uses.
const char *path_of(const char *name) {
  if (strcmp(name, "input")) abort();
  return path;
}

int link_put(uint8_t type, uint8_t stream, uint16_t flags, const uint8_t *id, uint64_t offset, const void *payload,
             size_t n) {
  if (type != INPUT_TAKEN || stream || payload || n || memcmp(id, ID, ID_BYTES)) abort();
  if (offset < reported) abort();
  reported = offset;
  reported_closed = flags;
  return 1;
}

static uint32_t next_random(void) { // xorshift: the same bytes for the same seed, everywhere
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state >> 16;
}

static uint8_t byte_at(uint64_t n) { return n * 167 + (n >> 8) * 13 + (n >> 16); }

static uint64_t send_frame(uint64_t from, uint64_t end_at) {
  static uint8_t payload[MOST_BYTES];
  Header header = {.type = INPUT, .length = next_random() % (next_random() % 4 ? 3000 : 400000), .offset = from};
  memcpy(header.id, next_random() % 16 ? ID : OTHER, ID_BYTES);
  switch (next_random() % 8) {
    case 0: header.offset = from > 5000 ? from - next_random() % 5000 : 0; break; // again
    case 1: header.offset = from + 1 + next_random() % 1000000; break; // too early
    case 2: header.offset = next_random() % 2 ? UINT64_MAX - next_random() % 9 : (uint64_t)next_random() << 32; break;
    default: break;
  }
  if (header.offset < end_at && header.offset + header.length >= end_at) {
    header.length = end_at - header.offset;
    header.flags = next_random() % 4 ? 1 : 0;
  } else if (header.offset == end_at) {
    header.length = 0;
    header.flags = 1;
  }
  for (uint32_t i = 0; i < header.length; i++) payload[i] = byte_at(header.offset + i);
  input_on_frame(&header, payload);
  return header.length;
}

// Runs a command with this many random frames. Returns how many bytes it read.
static uint64_t run(int frames) {
  static uint8_t bytes[70000];
  const uint64_t end_at = next_random() % MOST_BYTES,
                 gives_up_at = next_random() % 4 ? UINT64_MAX : next_random() % MOST_BYTES;
  uint64_t seen = 0;
  int ended = 0, reader = -1;
  reported = reported_closed = 0;
  if (!input_begin(ID)) abort();
  for (int i = 0; i < frames && !ended; i++) {
    if (next_random() % 50 == 0) input_resume();
    send_frame(reported + next_random() % 2, end_at);
    input_tick();
    if (reader == -1 && next_random() % 4 == 0) {
      reader = open(path, O_RDONLY | O_NONBLOCK);
      if (reader < 0) abort(); // the command has not ended, so its pipe exists
      input_tick();
    }
    for (int pieces = next_random() % 4; pieces && reader >= 0; pieces--) {
      const ssize_t n = read(reader, bytes, 1 + next_random() % sizeof bytes);
      if (n < 0 && errno != EAGAIN) abort();
      for (ssize_t k = 0; k < n; k++)
        if (bytes[k] != byte_at(seen + k)) abort();
      if (n > 0) seen += n;
      if (n == 0 && seen != end_at) abort();
      if (n == 0) ended = 1;
    }
    if (reader >= 0 && seen > gives_up_at) {
      close(reader);
      reader = -2;
    }
    struct epoll_event event;
    if (events_wait(&event, 1, 0, 0) > 0) input_on_writable();
    if (!input_send()) abort();
    if (!reported_closed && reported < seen) abort(); // bytes were read that were not reported as written
  }
  input_end();
  if (!access(path, F_OK)) abort(); // the end must remove the pipe
  if (reader >= 0) close(reader);
  return seen;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  state = strtoull(argv[1], 0, 10) * 0x9e3779b97f4a7c15u + 1;
  const uint64_t deadline = now_ms() + strtoull(argv[2], 0, 10);
  snprintf(path, sizeof path, "/tmp/sf-fuzz-input-%d", getpid());
  signal(SIGPIPE, SIG_IGN);
  if (!events_open() || !input_open()) return 1;
  uint64_t rounds = 0, read = 0;
  while (now_ms() < deadline) {
    read += run(400);
    rounds++;
  }
  printf("%llu rounds, %llu bytes\n", (unsigned long long)rounds, (unsigned long long)read);
  return 0;
}
