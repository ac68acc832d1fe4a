// The little-endian protocol between worker and keeper, as in frames.ts (docs/keeper-protocol.md).
#ifndef WIRE_H
#define WIRE_H
#include <stddef.h>
#include <stdint.h>

// The protocol of this keeper, and the oldest protocol of a worker with which it works.
enum { KEEPER_PROTOCOL_VERSION = 7, OLDEST_WORKER_PROTOCOL = 7 };
enum { ID_BYTES = 16, STREAMS = 2, SYNC_BYTES = 8, CRC_BYTES = 4, TOKEN_BYTES = 64 };
enum { MAX_INBOUND_PAYLOAD = 4 << 20, MAX_OUTBOUND_PAYLOAD = 64 << 10 };

typedef struct {
  uint32_t length; // of the payload
  uint8_t type;
  uint8_t stream; // 0 stdout, 1 stderr
  uint16_t flags;
  uint8_t id[ID_BYTES]; // of the entry, the terminal or the file call
  uint64_t fence;
  uint64_t offset;
} Header;
_Static_assert(sizeof(Header) == 40, "the header has no padding");

enum FrameType {
  CLAIM = 1,
  START = 2,
  ACK = 3,
  RESUME = 4,
  STOP = 5,
  STORAGE = 6,
  CLOSE = 7,
  PING = 8,
  INPUT = 9,
  TERMINAL_OPEN = 10,
  TERMINAL_INPUT = 11,
  TERMINAL_RESIZE = 12,
  TERMINAL_CLOSE = 13,
  FILE_CALL = 14,
  EXAMINE = 15,
  HELLO = 65,
  OUTPUT = 66,
  LATE = 67,
  END = 68,
  REFUSED = 69,
  PONG = 70,
  SHELL = 71,
  INPUT_TAKEN = 72,
  TERMINAL_OUTPUT = 73,
  TERMINAL_ENDED = 74,
  LOG = 75,
  FILE_OUTPUT = 76,
  FILE_ENDED = 77,
  EXAMINED = 78,
};

// Flags of PING and PONG.
enum Request { WITH_PROCESSES = 1, WITH_DIRECTORY = 2 };

enum EntryKind { COMMAND_ENTRY = 0, RESTART_ENTRY = 1 };

enum Refusal {
  REFUSED_RUNNING = 1,
  REFUSED_ENDED = 2,
  REFUSED_BEGUN_BEFORE = 3,
  REFUSED_BUSY = 4,
  REFUSED_NO_SHELL = 5,
  REFUSED_INVALID = 6,
  REFUSED_NO_SPACE = 7,
  REFUSED_OTHER_SHELL = 8,
};

enum EndReason {
  EXITED = 0,
  SIGNALLED = 1,
  OUT_OF_MEMORY = 2,
  WALL = 3,
  NO_OUTPUT = 4,
  CANCELLED = 5,
  NO_CWD = 6,
  SYNTAX = 7,
  HOST_OUT_OF_MEMORY = 8,
};

enum ShellState { KEPT = 0, PARTIAL = 1, LOST = 2 };

// Exit codes of a keeper that cannot start or install itself.
enum ExitCode {
  EXIT_NOT_FIRST = 101,
  EXIT_USAGE = 102,
  EXIT_NO_IDENTITY = 103,
  EXIT_NO_DIRECTORY = 104,
  EXIT_NO_RESOURCES = 105,
  EXIT_OTHER_WORKSPACE = 106,
  EXIT_NO_PORT = 107,
  EXIT_INSTALL_NOT_READ = 108,
  EXIT_INSTALL_NOT_WRITTEN = 109,
  EXIT_INSTALL_NO_SPACE = 110,
};

enum HelloState { HELLO_IDLE = 0, HELLO_RUNNING = 1, HELLO_ENDED = 2, HELLO_NO_SHELL = 3 };

// Reads a payload from the front. A read past the end sets `bad` and yields zeros: check once, after the last one.
typedef struct {
  const uint8_t *at;
  size_t left;
  int bad;
} Cursor;

const uint8_t *take_bytes(Cursor *cursor, size_t n);
uint32_t take_u32(Cursor *cursor);
uint64_t take_u64(Cursor *cursor);

// Returns zlib's CRC-32 of a text that continues with these bytes. `crc` is the CRC-32 of the bytes before, or 0.
uint32_t crc32_of(uint32_t crc, const void *bytes, size_t n);

// Cuts received bytes into frames. On the socket a malformed frame ends the connection. Over attach a frame is sync
// word, header, payload, CRC-32 of both, and other bytes are skipped.
typedef struct {
  uint8_t *bytes;
  size_t size; // of the buffer: at least one whole frame
  size_t start, end;
  size_t searched; // bytes of the frame at `start` that hold no other sync word
  const uint8_t *sync; // null on the socket
} Parser;

enum Parsed { NEED_MORE, FRAME, MALFORMED };

size_t parser_size(void);
// Returns where the next bytes go, and sets `n` to how many fit.
uint8_t *parser_space(Parser *parser, size_t *n);
// Takes the next frame. Its header and payload stay valid until the next call of parser_space.
enum Parsed parser_next(Parser *parser, Header *header, const uint8_t **payload);
void parser_reset(Parser *parser);

#endif
