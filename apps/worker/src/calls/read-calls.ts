import { type HostCall, hostCallSchema, hostKeys } from '@shellfleet/protocol';
import type { HostServices } from '../run/host-services.ts';

/** Calls that are read together. Each may carry a part of a file. */
const PAGE = 20;

/**
 * Reads and deletes the host's `calls`. Their loss, delay or repetition is harmless: the mailbox has what they
 * announce.
 */
export async function readCalls(
  { redis, namespace, hostId, logger }: HostServices,
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
