#define _GNU_SOURCE
#include "hello.h"
#include "begun.h"
#include "entry.h"
#include "identity.h"
#include "link.h"
#include "output.h"
#include "shell.h"
#include <string.h>

typedef struct {
  uint16_t version, oldest_worker;
  uint16_t state, has_builtin;
  uint32_t shell_number, begun;
  uint64_t received[STREAMS], acked[STREAMS];
  char token[TOKEN_BYTES];
  char problem[256];
} HelloFields;

static enum HelloState state_now(const char *problem) {
  if (entry_is_busy()) return HELLO_RUNNING;
  if (problem) return HELLO_NO_SHELL;
  return entry_has_ended() ? HELLO_ENDED : HELLO_IDLE;
}

void hello_put(void) {
  const char *problem = shell_problem();
  HelloFields hello = {
    .version = KEEPER_PROTOCOL_VERSION, .oldest_worker = OLDEST_WORKER_PROTOCOL, .state = state_now(problem)};
  hello.has_builtin = shell_is_stepped();
  hello.shell_number = shell_number();
  hello.begun = begun_count();
  for (int s = 0; s < STREAMS; s++) {
    hello.received[s] = output_received(s);
    hello.acked[s] = output_acked(s);
  }
  memcpy(hello.token, identity_token(), TOKEN_BYTES);
  if (problem) strncpy(hello.problem, problem, sizeof hello.problem - 1);
  const size_t n = sizeof hello - sizeof hello.problem + strlen(hello.problem);
  link_put(HELLO, 0, 0, entry_id(), 0, &hello, n); // without room there is no HELLO: the worker claims again
  explicit_bzero(hello.token, sizeof hello.token);
}
