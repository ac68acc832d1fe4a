#define _GNU_SOURCE
#include "file_calls.h"
#include "clock.h"
#include "entry.h"
#include "files.h"
#include "link.h"
#include "log.h"
#include "process_limit.h"
#include "processes.h"
#include "reaper.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REMEMBERED = 256, REPLY_BYTES = 4 << 20, PIECE_BYTES = 32 << 10 };

typedef struct {
  uint8_t error; // errno; 0: it was done
  uint8_t signal;
  uint16_t refusal;
  uint32_t zero;
  uint64_t total[STREAMS];
} End;
_Static_assert(sizeof(End) == 24, "the payload of FILE_ENDED has no padding");

typedef struct {
  int is_taken;
  uint8_t id[ID_BYTES];
  pid_t helper; // 0 when it has ended
  int streams[STREAMS]; // files in memory with what the helper prints
  uint64_t sent[STREAMS];
  uint64_t kill_at; // 0: never
  int is_late;      // the helper was killed at its time limit
  int is_followed; // the worker that made the call is connected
  End end;
} Call;

typedef struct {
  uint8_t id[ID_BYTES];
  uint8_t error, signal; // errno or signal with which the call ended
} Begun;

static Call calls[FILE_CALLS];
static Begun begun[REMEMBERED];
static uint32_t begun_count;

static Begun *find_begun(const uint8_t *id) {
  for (int i = 0; i < REMEMBERED; i++)
    if (!memcmp(begun[i].id, id, ID_BYTES)) return &begun[i];
  return 0;
}

static Call *find_running(const uint8_t *id) {
  for (int i = 0; i < FILE_CALLS; i++)
    if (calls[i].is_taken && calls[i].helper && !memcmp(calls[i].id, id, ID_BYTES)) return &calls[i];
  return 0;
}

// Returns the slot of the oldest call that has ended.
static Begun *next_begun(void) {
  Begun *slot;
  do slot = &begun[begun_count++ % REMEMBERED];
  while (find_running(slot->id));
  return slot;
}

static Call *find_free(void) {
  for (int i = 0; i < FILE_CALLS; i++)
    if (!calls[i].is_taken) return &calls[i];
  return 0;
}

static void release(Call *call) {
  for (int s = 0; s < STREAMS; s++)
    if (call->streams[s] >= 0) close(call->streams[s]);
  call->is_taken = 0;
}

static void refuse(const Header *header, enum Refusal refusal, int error, int signal) {
  const End end = {.refusal = refusal, .error = error, .signal = signal};
  link_put(FILE_ENDED, 0, 0, header->id, 0, &end, sizeof end); // without room the worker waits until it connects again
}

// If a fork fails while no entry runs, background processes fill the limit. They are killed, as before a command.
static pid_t spawn(const FileOperation *file, const int *streams) {
  const pid_t helper = file_spawn(file, streams[0], streams[1]);
  if (helper >= 0 || entry_is_busy()) return helper;
  process_limit_sweep();
  return file_spawn(file, streams[0], streams[1]);
}

static void begin(Call *call, const Header *header, const FileOperation *file) {
  *call = (Call){.is_taken = 1, .is_followed = 1, .streams = {-1, -1}};
  memcpy(call->id, header->id, ID_BYTES);
  for (int s = 0; s < STREAMS; s++) call->streams[s] = memfd_create("reply", MFD_CLOEXEC);
  call->helper = call->streams[0] < 0 || call->streams[1] < 0 ? -1 : spawn(file, call->streams);
  if (call->helper < 0) {
    log_failure("starting a file operation");
    release(call);
    refuse(header, 0, EAGAIN, 0);
    return;
  }
  Begun *own = next_begun();
  *own = (Begun){0};
  memcpy(own->id, header->id, ID_BYTES);
  if (file->timeout_ms) call->kill_at = now_ms() + file->timeout_ms;
  reaper_watch(call->helper);
  processes_spare(call->helper);
}

void file_call_start(const Header *header, const uint8_t *payload) {
  FileOperation file;
  Cursor cursor = {.at = payload, .left = header->length};
  Call *call = find_free();
  const Begun *own = find_begun(header->id);
  if (find_running(header->id)) refuse(header, REFUSED_RUNNING, 0, 0);
  else if (own) refuse(header, REFUSED_ENDED, own->error, own->signal);
  else if (!file_parse(&cursor, &file)) refuse(header, REFUSED_INVALID, 0, 0);
  else if (!call) refuse(header, REFUSED_BUSY, 0, 0);
  else begin(call, header, &file);
}

void file_call_stop(const Header *header) {
  const Call *call = find_running(header->id);
  if (call) kill(call->helper, SIGKILL); // a child that is not reaped yet: it cannot fail
}

void file_calls_claimed(void) {
  for (int i = 0; i < FILE_CALLS; i++) calls[i].is_followed = 0;
}

static uint64_t size_of(int fd) {
  struct stat status;
  return fstat(fd, &status) ? 0 : status.st_size;
}

static void conclude(Call *call, int status) {
  if (!WIFSIGNALED(status)) call->end.error = WEXITSTATUS(status);
  else if (call->is_late) call->end.error = ETIMEDOUT;
  else call->end.signal = WTERMSIG(status);
  for (int s = 0; s < STREAMS; s++) call->end.total[s] = size_of(call->streams[s]);
  if (call->end.total[0] + call->end.total[1] > REPLY_BYTES) {
    call->end.total[0] = call->end.total[1] = 0;
    if (!call->end.error && !call->end.signal) call->end.error = EFBIG;
  }
  Begun *own = find_begun(call->id);
  if (!own) return;
  own->error = call->end.error;
  own->signal = call->end.signal;
}

void file_calls_on_children(void) {
  for (int i = 0; i < FILE_CALLS; i++) {
    Call *call = &calls[i];
    int status;
    if (!call->is_taken || !call->helper || !reaper_take(call->helper, &status)) continue;
    processes_unspare(call->helper);
    call->helper = 0;
    conclude(call, status);
  }
}

int file_calls_tick(void) {
  int wake = -1;
  const uint64_t now = now_ms();
  for (int i = 0; i < FILE_CALLS; i++) {
    Call *call = &calls[i];
    if (!call->is_taken) continue;
    if (!call->helper && !call->is_followed) release(call); // CALLS-2
    if (!call->is_taken || !call->helper || !call->kill_at) continue;
    if (now >= call->kill_at) {
      kill(call->helper, SIGKILL); // a child that is not reaped yet: it cannot fail
      call->kill_at = 0;
      call->is_late = 1;
    } else if (wake < 0 || call->kill_at - now < (uint64_t)wake) {
      wake = call->kill_at - now;
    }
  }
  return wake;
}

// Sends the rest of a reply. Returns 0 when the link had no room.
static int send_call(Call *call) {
  static uint8_t piece[PIECE_BYTES];
  for (int s = 0; s < STREAMS; s++) {
    while (call->sent[s] < call->end.total[s]) {
      const ssize_t n = pread(call->streams[s], piece, sizeof piece, call->sent[s]);
      if (n <= 0) { // cannot fail: it is memory of this process
        call->end.total[s] = call->sent[s];
        break;
      }
      const uint64_t left = call->end.total[s] - call->sent[s];
      const size_t bytes = (uint64_t)n < left ? (uint64_t)n : left;
      if (!link_put(FILE_OUTPUT, s, 0, call->id, call->sent[s], piece, bytes)) return 0;
      call->sent[s] += bytes;
    }
  }
  if (!link_put(FILE_ENDED, 0, 0, call->id, 0, &call->end, sizeof call->end)) return 0;
  release(call);
  return 1;
}

int file_calls_send(void) {
  int more = 0;
  if (!link_is_up()) return 0;
  for (int i = 0; i < FILE_CALLS; i++) {
    Call *call = &calls[i];
    if (call->is_taken && !call->helper && call->is_followed && !send_call(call)) more = 1;
  }
  return more;
}
