import { callHost, takeReply } from '@shellfleet/mailbox';
import {
  fromWireError,
  type HostReply,
  type HostRequest,
  hostReplySchemas,
  type NewHostCall,
  parseOrThrow,
  type SessionKeys,
  ShellfleetError,
  sealedReplySchema,
  toLogPage,
} from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';
import type { PendingReplies } from '../results/pending-replies.ts';
import { isHostAlive } from './is-host-alive.ts';

export interface RequestContext extends FleetContext {
  readonly sealer: Sealer;
  readonly inboxId: string;
  readonly replies: PendingReplies;
  nextId(): string;
  openInbox(): Promise<void>;
}

const REPLY_WITHIN_MS = 5_000;

interface RequestOptions {
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

/**
 * Asks a host about one of its sessions, or about itself if the keys have an empty session. Rejects with the host's
 * error, or HOST_UNREACHABLE without a reply within 5 s.
 */
export async function requestFromHost<Q extends HostRequest>(
  context: RequestContext,
  host: string,
  keys: SessionKeys,
  request: Q,
  { timeoutMs = REPLY_WITHIN_MS, signal }: RequestOptions = {},
): Promise<HostReply<Q['type']>> {
  if (!(await isHostAlive(context, host))) throw unreachable(host, keys);
  const { tenant, session } = keys;
  const id = context.nextId();
  await context.openInbox();
  const { redis, namespace, inboxId: inbox } = context;
  const call = { type: 'request', tenant, session, id, inbox, request } as NewHostCall;
  const ask = () => callHost(redis, namespace, host, call);
  const late = AbortSignal.timeout(timeoutMs);
  const ends = signal === undefined ? late : AbortSignal.any([late, signal]);
  const reply = context.replies.expect(id, ends, () => void ask().catch(() => {}));
  try {
    const [told] = await Promise.all([reply, ask()]);
    const place = sealPlace('reply', keys, id);
    if (told !== '') return toValue(context.sealer.openBytes(told, place), request) as HostReply<Q['type']>;
    const sealed = await takeReply(context.redis, keys, id);
    if (sealed === undefined) throw unreachable(host, keys);
    return toValue(context.sealer.openRaw(sealed, place), request) as HostReply<Q['type']>;
  } catch (error) {
    if (late.aborted && error === late.reason) throw unreachable(host, keys, timeoutMs);
    throw error;
  }
}

/** Returns the value of a reply: JSON and, for a page of a log, a line feed and the data of its pieces. */
function toValue(plain: Buffer, { type }: HostRequest): unknown {
  const feed = plain.indexOf('\n');
  const end = feed === -1 ? plain.length : feed;
  const json = JSON.parse(plain.toString('utf8', 0, end));
  const reply = parseOrThrow(sealedReplySchema, json, 'INTERNAL', 'The reply of a host');
  if (reply.type === 'refusal') throw fromWireError(reply.error);
  const parse = <T>(schema: z.ZodType<T>) => parseOrThrow(schema, reply.value, 'INTERNAL', 'The reply of a host');
  return type === 'log'
    ? toLogPage(parse(hostReplySchemas.log), plain.subarray(end + 1))
    : parse<unknown>(hostReplySchemas[type]);
}

function unreachable(host: string, { session }: SessionKeys, waitedMs?: number): ShellfleetError {
  const how = waitedMs === undefined ? 'is not up' : `did not reply within ${waitedMs} ms`;
  const [of, about] = session === '' ? ['', {}] : [` of session ${session}`, { sessionId: session }];
  return new ShellfleetError('HOST_UNREACHABLE', `The host ${host}${of} ${how}.`, { hostId: host, ...about });
}
