import { type HostCall, hostCallSchema, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

const PAGE = 100;

/**
 * Reads what the host's `calls` stream holds, hands each call on, and forgets it.
 * Calls are hints about what the mailbox already says, so one that is handed on twice, or to nobody, does no harm.
 */
export async function readCalls(
  redis: Redis,
  namespace: string,
  hostId: string,
  logger: Logger,
  onCall: (call: HostCall) => void,
): Promise<void> {
  const { calls } = hostKeys(namespace, hostId);
  for (;;) {
    const entries = await redis.xrange(calls, '-', '+', 'COUNT', PAGE);
    for (const [, fields] of entries) {
      const call = parseCall(fields[1]);
      if (call === undefined) logger.warn('call.invalid');
      else onCall(call);
    }
    if (entries.length > 0) await redis.xdel(calls, ...entries.map(([id]) => id));
    if (entries.length < PAGE) return;
  }
}

function parseCall(text: string | undefined): HostCall | undefined {
  try {
    return hostCallSchema.parse(JSON.parse(text ?? ''));
  } catch {
    return undefined;
  }
}
