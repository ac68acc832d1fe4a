#define _GNU_SOURCE
#include "link.h"
#include "clock.h"
#include "events.h"
#include "log.h"
#include "memory.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { SEND_BYTES = 512 << 10, RESERVE_BYTES = 96 << 10, READ_BYTES = 256 << 10 };
enum { RETRY_MS = 20, RETRY_LATER_MS = 100, RETRY_OFTEN_FOR_MS = 10000, CLAIM_WITHIN_MS = 2000 };

static struct {
  const Transport *transport;
  const uint8_t *sync; // null if no sync word precedes the frames
  Greeter *greet;
  int in, out; // -1: no connection
  int is_claimed;
  uint64_t fence; // the highest fence of a claim so far
  uint64_t connected_at, away_since;
  uint64_t confirmed_at; // when the owner's last frame came
} own = {.in = -1, .out = -1};

static Parser parser;

static struct {
  uint8_t *bytes;
  size_t from, to; // the bytes that are not written yet
  int is_blocked;  // waits for EPOLLOUT
  size_t secret_to; // end of the bytes that may hold the token
} queue;

static void queue_clear(void) {
  if (queue.secret_to) explicit_bzero(queue.bytes, queue.secret_to);
  queue.from = queue.to = queue.secret_to = 0;
}

static int connect_now(void) {
  if (!own.transport->connect(&own.in, &own.out)) return 0;
  own.connected_at = now_ms();
  const int is_watched =
    events_add(own.in, EPOLLIN, LINK_IN) && (own.in == own.out || events_add(own.out, 0, LINK_OUT));
  if (is_watched) return 1;
  link_drop();
  return 0;
}

int link_open(const Transport *transport, const uint8_t *sync, Greeter *greet) {
  own.transport = transport;
  own.sync = transport->is_renewable ? 0 : sync;
  own.greet = greet;
  own.away_since = own.confirmed_at = now_ms();
  parser = (Parser){.size = parser_size(), .sync = own.sync};
  parser.bytes = memory_reserve(parser.size);
  queue.bytes = memory_reserve(SEND_BYTES);
  if (!parser.bytes || !queue.bytes) return 0;
  return transport->is_renewable || connect_now();
}

int link_tick(void) {
  if (!queue.bytes || !own.transport->is_renewable) return -1;
  const uint64_t now = now_ms();
  if (own.in >= 0 && !own.is_claimed && now - own.connected_at >= CLAIM_WITHIN_MS) link_drop();
  const int claim_ms = own.in < 0 || own.is_claimed ? -1 : (int)(own.connected_at + CLAIM_WITHIN_MS - now) + 1;
  if (own.transport->tick) {
    const int wake = own.transport->tick();
    return wake < 0 || (claim_ms >= 0 && claim_ms < wake) ? claim_ms : wake;
  }
  if (own.in >= 0) return claim_ms;
  if (connect_now()) {
    own.greet();
    link_flush();
    if (own.in >= 0) return CLAIM_WITHIN_MS;
  }
  return now - own.away_since < RETRY_OFTEN_FOR_MS ? RETRY_MS : RETRY_LATER_MS;
}

// Drops the connection. If it is not renewable, drops only the queue, and the next worker looks for a sync word.
void link_drop(void) {
  parser_reset(&parser);
  queue_clear();
  own.is_claimed = 0;
  if (!own.transport->is_renewable || own.in < 0) return;
  own.transport->close(own.in);
  own.in = own.out = -1;
  queue.is_blocked = 0;
  own.away_since = now_ms();
}

void link_malformed(void) {
  log_message("a malformed frame came from the worker");
  if (own.transport->is_renewable) link_drop();
}

void link_abandon(void) {
  memory_release(queue.bytes, SEND_BYTES); // this process's copy of what was queued
  if (own.transport->is_renewable && own.in >= 0) own.transport->close(own.in);
  own.in = own.out = -1;
  if (own.transport->abandon) own.transport->abandon();
}

int link_is_connected(void) { return own.out >= 0; }
int link_is_up(void) { return own.is_claimed; }
int link_is_flushed(void) { return queue.from == queue.to; }
uint64_t link_confirmed_at(void) { return own.confirmed_at; }

static void accept_claim(const Header *header, const uint8_t *payload, FrameSink *sink) {
  if (header->fence < own.fence) {
    own.greet(); // its HELLO carries the higher fence
    return;
  }
  own.fence = header->fence;
  own.is_claimed = 1;
  own.confirmed_at = now_ms();
  if (!own.transport->is_renewable) queue_clear(); // frames for a worker that has gone
  sink(header, payload);
}

static void accept_frame(const Header *header, const uint8_t *payload, FrameSink *sink) {
  if (header->type == CLAIM) {
    accept_claim(header, payload, sink);
  } else if (own.is_claimed && header->fence == own.fence) { // LINK-1
    own.confirmed_at = now_ms();
    sink(header, payload);
  }
}

// Called when the other end is closed, or the connection is broken.
static void end_of_input(void) {
  if (!own.transport->is_renewable) { // stdin is closed for good: no worker can reach this keeper any more
    events_remove(own.in);
    own.is_claimed = 0;
  }
  link_drop();
}

// Passes on the received frames. Returns 0 when the connection is gone.
static int accept_frames(FrameSink *sink) {
  for (;;) {
    Header header;
    const uint8_t *payload;
    const enum Parsed parsed = parser_next(&parser, &header, &payload);
    if (parsed == FRAME) accept_frame(&header, payload, sink);
    if (own.in < 0) return 0; // the sink may have dropped the connection
    if (parsed == MALFORMED) link_malformed();
    if (parsed != FRAME) return own.in >= 0;
  }
}

void link_read(FrameSink *sink) {
  while (own.in >= 0) { // an event may have come before the connection was dropped
    size_t room;
    uint8_t *space = parser_space(&parser, &room);
    if (room > READ_BYTES) room = READ_BYTES;
    const ssize_t n = own.transport->read(own.in, space, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      end_of_input();
      return;
    }
    parser.end += n;
    if (!accept_frames(sink)) return;
    if (parser.start == parser.end && parser.end > READ_BYTES) memory_release(parser.bytes, parser.size);
    if ((size_t)n < room) return;
  }
}

static void append(const void *bytes, size_t n) {
  if (n) memcpy(queue.bytes + queue.to, bytes, n);
  queue.to += n;
}

static size_t framed(size_t n) { return sizeof(Header) + n + (own.sync ? SYNC_BYTES + CRC_BYTES : 0); }

static size_t limit_of(uint8_t type) {
  const int is_output = type == OUTPUT || type == LATE || type == TERMINAL_OUTPUT || type == FILE_OUTPUT;
  return is_output ? SEND_BYTES - RESERVE_BYTES : SEND_BYTES;
}

int link_put(uint8_t type, uint8_t stream, uint16_t flags, const uint8_t *id, uint64_t offset, const void *payload,
             size_t n) {
  if (own.out < 0) return 0;
  if (queue.from == queue.to) queue_clear();
  if (queue.to + framed(n) > limit_of(type)) return 0;
  Header header = {.length = n, .type = type, .stream = stream, .flags = flags, .fence = own.fence, .offset = offset};
  if (id) memcpy(header.id, id, ID_BYTES);
  if (own.sync) append(own.sync, SYNC_BYTES);
  append(&header, sizeof header);
  append(payload, n);
  if (own.sync) {
    const uint32_t crc = crc32_of(crc32_of(0, &header, sizeof header), payload, n);
    append(&crc, sizeof crc);
  }
  if (type == HELLO) queue.secret_to = queue.to;
  return 1;
}

int link_has_room(void) { return own.out >= 0 && queue.to - queue.from < SEND_BYTES / 4; }

static void watch_for_room(int is_blocked) {
  if (is_blocked == queue.is_blocked) return;
  const uint32_t writable = is_blocked ? EPOLLOUT : 0;
  const int changed = own.in == own.out ? events_change(own.out, EPOLLIN | writable, LINK_IN)
                                        : events_change(own.out, writable, LINK_OUT);
  if (changed) queue.is_blocked = is_blocked;
  else link_drop(); // otherwise the rest would never be written
}

void link_flush(void) {
  if (own.out < 0) return;
  while (queue.from < queue.to) {
    const ssize_t n = own.transport->write(own.out, queue.bytes + queue.from, queue.to - queue.from);
    if (n > 0) {
      queue.from += n;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    link_drop();
    return;
  }
  if (queue.from == queue.to) queue_clear();
  watch_for_room(queue.from < queue.to);
}

// Sends the worker the HELLO with the higher fence. It is made at the end of what waits for the owner, and taken out.
static void refuse_claim(void) {
  if (link_is_flushed()) queue_clear();
  const size_t end = queue.to;
  own.greet();
  own.transport->refuse(queue.bytes + end, queue.to - end);
  queue.to = end;
}

static void take_worker(FrameSink *sink) {
  link_drop();
  if (!connect_now()) return;
  own.greet();
  link_flush();
  if (own.in >= 0) link_read(sink); // what came with the claim
}

void link_accept(FrameSink *sink) {
  if (!queue.bytes || !own.transport->next_claim) return;
  for (const Header *claim; (claim = own.transport->next_claim());) {
    if (own.is_claimed && claim->fence < own.fence) refuse_claim();
    else take_worker(sink);
  }
}
