import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';

export function throwQueueError(cause: unknown): never {
  throw toQueueError(cause);
}

/** Converts a failure of Redis or of its connection to a ShellfleetError. A ShellfleetError is returned unchanged. */
export function toQueueError(cause: unknown): ShellfleetError {
  if (isShellfleetError(cause)) return cause;
  const text = describeCause(cause);
  const full = text.includes('OOM command not allowed');
  const message = full
    ? 'Redis is full (maxmemory reached), so it takes nothing new. Free memory, or raise maxmemory.'
    : `Redis gave no usable answer: ${text}. Check that it runs and can be reached.`;
  return new ShellfleetError('QUEUE_UNAVAILABLE', message, full ? { full } : {}, { cause });
}

/** Returns true if Redis refused a call because it has no room for new data. */
export function isRedisFull(error: unknown): boolean {
  return isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE' && error.context.full === true;
}

/**
 * Rewords two errors of ioredis whose texts speak of ioredis options instead of the connection. Other texts stay as
 * they are.
 */
function describeCause(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  if (text.startsWith('Reached the max retries')) return 'the connection broke before its answer';
  return text.startsWith("Stream isn't writeable") ? 'there is no connection to it' : text;
}
