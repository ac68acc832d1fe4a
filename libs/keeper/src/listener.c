#define _GNU_SOURCE
#include "listener.h"
#include "addresses.h"
#include "clock.h"
#include "events.h"
#include "log.h"
#include "records.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAITING_PEERS = 4, PEERS = WAITING_PEERS + 1, PROVE_WITHIN_MS = 1000, BACKLOG = 16 };
enum { ACCEPTS_PER_TURN = BACKLOG, DEFER_SECONDS = 1, PAUSE_MS = 100 };

enum State {
  FREE,
  GREETING, // has not sent its first message, which shows the preshared key
  PROVING,  // has sent it, but no frame
  CLAIMING, // has proven itself and sent a CLAIM
  ANSWERED, // has got a refusal, and a moment to read it
  CONNECTED // is the connection
};

typedef struct {
  enum State state;
  int fd;
  uint64_t number, accepted_at; // number: counts the peers, of which many may come in one ms
  Header claim; // of a peer that is CLAIMING
  Records records;
} Peer;

static Peer peers[PEERS];
static struct sockaddr_in6 where;
static int listening = -1;
static int accepts_left; // in this turn of the loop
static uint64_t paused_until; // 0: connections are accepted

static Peer *find_peer(enum State state) {
  for (int i = 0; i < PEERS; i++)
    if (peers[i].state == state) return &peers[i];
  return 0;
}

static int is_waiting(const Peer *peer) { return peer->state != FREE && peer->state != CONNECTED; }

static void drop(Peer *peer) {
  close(peer->fd); // which also ends its events
  records_reset(&peer->records);
  peer->state = FREE;
}

static Peer *find_oldest(enum State from, enum State to) {
  Peer *oldest = 0;
  for (int i = 0; i < PEERS; i++) {
    if (peers[i].state < from || peers[i].state > to) continue;
    if (!oldest || peers[i].number < oldest->number) oldest = &peers[i];
  }
  return oldest;
}

// Returns room for one more peer. If it has to drop one for it, that is the oldest of those that have shown nothing.
static Peer *make_room(void) {
  int waiting = 0;
  for (int i = 0; i < PEERS; i++) waiting += is_waiting(&peers[i]);
  if (waiting == WAITING_PEERS) {
    Peer *stranger = find_oldest(GREETING, GREETING);
    drop(stranger ? stranger : find_oldest(PROVING, ANSWERED));
  }
  return find_peer(FREE);
}

// Lets a peer make its next steps towards a claim. Drops it at a wrong one.
static void advance(Peer *peer) {
  if (peer->state == GREETING) {
    const int greeted = records_greet(&peer->records, peer->fd);
    if (greeted > 0) peer->state = PROVING;
    if (greeted < 0) drop(peer);
  }
  if (peer->state != PROVING) return;
  const int peeked = records_peek(&peer->records, peer->fd, &peer->claim, sizeof peer->claim);
  if (peeked > 0 && peer->claim.type == CLAIM) peer->state = CLAIMING;
  else if (peeked) drop(peer);
}

static void add_peer(int fd) {
  static uint64_t peers_so_far;
  Peer *peer = make_room();
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // a failure costs time and nothing else
  peer->state = GREETING;
  peer->fd = fd;
  peer->number = ++peers_so_far;
  peer->accepted_at = now_ms();
  // What has arrived with the connection is read before a later one can take its place.
  if (events_add(fd, EPOLLIN, LINK_PEERS)) advance(peer);
  else drop(peer);
}

// Stops accepting for a moment. The socket stays readable, so that the loop would otherwise run without a pause.
static void pause_accepting(void) {
  static int has_told;
  if (!has_told++) log_failure("accepting a connection"); // once, since it may last
  accepts_left = 0;
  if (events_change(listening, 0, LINK_PEERS)) paused_until = now_ms() + PAUSE_MS;
}

// Returns the ms until connections are accepted again, or -1 if they are now.
static int resume_accepting(void) {
  const uint64_t now = now_ms();
  if (now < paused_until) return (int)(paused_until - now);
  accepts_left = ACCEPTS_PER_TURN;
  if (paused_until && !events_change(listening, EPOLLIN, LINK_PEERS)) return PAUSE_MS;
  paused_until = 0;
  return -1;
}

// Accepts what waits, but not all of a flood: the loop has other things to do.
static void accept_some(void) {
  for (; accepts_left > 0; accepts_left--) {
    struct sockaddr_storage address = {0};
    socklen_t n = sizeof address;
    const int fd = accept4(listening, (struct sockaddr *)&address, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno == EAGAIN) return;
    if (fd < 0 && errno != ECONNABORTED && errno != EINTR) return pause_accepting();
    if (fd < 0) continue;
    if (address_is_own((struct sockaddr *)&address)) close(fd);
    else add_peer(fd);
  }
}

static const Header *next_claim(void) {
  for (int i = 0; i < PEERS; i++) advance(&peers[i]);
  accept_some();
  const Peer *peer = find_peer(CLAIMING);
  return peer ? &peer->claim : 0;
}

static int take(int *in, int *out) {
  Peer *peer = find_peer(CLAIMING);
  if (!peer) return 0;
  events_remove(peer->fd); // the link adds it with another tag
  peer->state = CONNECTED;
  *in = *out = peer->fd;
  return 1;
}

static void refuse(const uint8_t *bytes, size_t n) {
  Peer *peer = find_peer(CLAIMING);
  events_remove(peer->fd);
  peer->state = ANSWERED;
  // The buffer of a new connection has room for one frame. The rest of the peer's second is for reading it, since a
  // connection that is closed with unread bytes loses those that it has sent.
  if (records_write(&peer->records, peer->fd, bytes, n) < 0 || shutdown(peer->fd, SHUT_WR)) drop(peer);
}

static int tick(void) {
  const uint64_t now = now_ms();
  int wake = resume_accepting();
  for (int i = 0; i < PEERS; i++) {
    if (!is_waiting(&peers[i])) continue;
    const int left = (int)(peers[i].accepted_at + PROVE_WITHIN_MS - now);
    if (left <= 0) drop(&peers[i]);
    else if (wake < 0 || left < wake) wake = left;
  }
  return wake;
}

static ssize_t read_text(int fd, void *bytes, size_t n) {
  const ssize_t got = records_read(&find_peer(CONNECTED)->records, fd, bytes, n);
  if (got < 0 && errno == EBADMSG) log_message("a damaged message came from the worker");
  return got;
}

static ssize_t write_text(int fd, const void *bytes, size_t n) {
  return records_write(&find_peer(CONNECTED)->records, fd, bytes, n);
}

static int hang_up(int fd) {
  (void)fd;
  drop(find_peer(CONNECTED));
  return 0;
}

static void abandon(void) {
  for (int i = 0; i < PEERS; i++)
    if (peers[i].state != FREE) drop(&peers[i]);
  close(listening);
}

// Reads an address into its IPv6 form. Returns 0 if it is not one.
static int parse_address(const char *text, size_t n, struct in6_addr *address) {
  char copy[sizeof "::ffff:" + INET6_ADDRSTRLEN];
  if (n >= INET6_ADDRSTRLEN) return 0;
  const int is_bracketed = n > 2 && text[0] == '[' && text[n - 1] == ']';
  if (is_bracketed) snprintf(copy, sizeof copy, "%.*s", (int)n - 2, text + 1);
  else snprintf(copy, sizeof copy, "::ffff:%.*s", (int)n, text);
  return inet_pton(AF_INET6, copy, address) == 1;
}

int listener_parse(const char *text) {
  const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
  where = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
  if (colon && !parse_address(text, colon - text, &where.sin6_addr)) return 0;
  int number = 0, end = 0;
  if (*port < '0' || *port > '9' || sscanf(port, "%5d%n", &number, &end) != 1 || port[end]) return 0;
  where.sin6_port = htons(number);
  return number > 0 && number <= 65535;
}

// Binds a socket that serves both families, or one for IPv4 alone where the kernel has no IPv6.
static int open_socket(void) {
  const int off = 0, on = 1;
  listening = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening >= 0) {
    return !setsockopt(listening, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) &&
           !setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
           !bind(listening, (const struct sockaddr *)&where, sizeof where);
  }
  struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = where.sin6_port};
  memcpy(&ipv4.sin_addr, where.sin6_addr.s6_addr + 12, sizeof ipv4.sin_addr); // zeros for all addresses
  listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return listening >= 0 && !setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
         !bind(listening, (const struct sockaddr *)&ipv4, sizeof ipv4);
}

const Transport *listener_open(void) {
  static const Transport transport = {
    .connect = take,
    .read = read_text,
    .write = write_text,
    .close = hang_up,
    .is_renewable = 1,
    .next_claim = next_claim,
    .refuse = refuse,
    .tick = tick,
    .abandon = abandon,
  };
  // The kernel keeps a connection to itself until the first bytes have arrived, so that silent peers take no place.
  const int seconds = DEFER_SECONDS;
  if (open_socket() && !setsockopt(listening, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds) &&
      !listen(listening, BACKLOG) && events_add(listening, EPOLLIN, LINK_PEERS))
    return &transport;
  log_failure("listening for workers");
  return 0;
}
