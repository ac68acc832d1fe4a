import {
  ATTRIBUTES,
  callsKey,
  type HostCall,
  hostCallSchema,
  hostKeys,
  type OperatorCall,
  operatorCallSchema,
  tenantIdSchema,
} from '@shellfleet/protocol';
import type { z } from 'zod';
import type { HostServices } from '../run/host-services.ts';

/** Calls that are read together. Each may carry a part of a file. */
const PAGE = 20;
/** Callers that are read together. */
const CALLERS = 1_000;

export interface CallReceiver {
  onCall(call: HostCall): void;
  onOperatorCall(call: OperatorCall): void;
}

/**
 * Reads and deletes the calls to the host. Their loss, delay or repetition is harmless: the mailbox has what they
 * announce. A call of a tenant counts only in the tenant's own stream, and one of an operator only in that of the host.
 */
export async function readCalls(host: HostServices, { onCall, onOperatorCall }: CallReceiver): Promise<void> {
  const { redis, namespace, hostId, logger } = host;
  const { calls, callers } = hostKeys(namespace, hostId);
  await readStream(host, calls, operatorCallSchema, onOperatorCall);
  for (;;) {
    const listed = (await redis.rpop(callers, CALLERS)) ?? [];
    for (const tenant of new Set(listed)) {
      if (!tenantIdSchema.safeParse(tenant).success) continue;
      const onOwnCall = (call: HostCall) => (call.tenant === tenant ? onCall(call) : logger.warn('call.invalid'));
      // One tenant's keys may hold anything. The other tenants are not held up.
      await readStream(host, callsKey(namespace, tenant, hostId), hostCallSchema, onOwnCall).catch((err: unknown) =>
        logger.warn({ err, [ATTRIBUTES.tenant]: tenant }, 'calls.failed'),
      );
    }
    if (listed.length < CALLERS) return;
  }
}

async function readStream<T>(
  { redis, logger }: HostServices,
  key: string,
  schema: z.ZodType<T>,
  onCall: (call: T) => void,
): Promise<void> {
  for (;;) {
    const entries = await redis.xrange(key, '-', '+', 'COUNT', PAGE);
    for (const [, fields] of entries) {
      const call = parseCall(fields[1], schema);
      if (call === undefined) logger.warn('call.invalid');
      else onCall(call);
    }
    if (entries.length > 0) await redis.xdel(key, ...entries.map(([id]) => id));
    if (entries.length < PAGE) return;
  }
}

function parseCall<T>(text: string | undefined, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(text ?? ''));
  } catch {
    return undefined;
  }
}
