import { readStoredSession, type StoredSession } from '@shellfleet/mailbox';
import { noHostReason, parseClass, parsePlacement, readBeats } from '@shellfleet/placement';
import {
  COLD_REASONS,
  type HostBeat,
  hostKeys,
  isShellfleetError,
  type SessionInfo,
  type SessionKeys,
  type SessionState,
  ShellfleetError,
  toCommandId,
  tryJson,
} from '@shellfleet/protocol';
import { readTenantQuotas, toQueueError } from '@shellfleet/redis';
import type { Sealer } from '@shellfleet/sealing';
import { type RequestContext, requestFromHost } from '../hosts/request-from-host.ts';
import { type ListedKept, readKept } from './kept.ts';
import { openSpec } from './open-spec.ts';
import { readRefusals } from './read-refusals.ts';
import { type QueueContext, readWaiting, type Waiting } from './waiting-queue.ts';
import { wantedHost } from './wanted-host.ts';

/** A tenant whose sessions are listed. */
export interface ListContext extends QueueContext {
  readonly tenant: string;
  readonly place: string;
  readonly sealer: Sealer;
  keysOf(sessionId: string): SessionKeys;
}

export interface InfoContext extends RequestContext, ListContext {}

const BACKGROUND_WITHIN_MS = 1_000;

/** Reads one session. Throws SESSION_NOT_FOUND. */
export async function readSessionInfo(context: InfoContext, keys: SessionKeys): Promise<SessionInfo> {
  const [info] = await readSessionInfos(context, [keys]);
  if (info !== undefined) return withBackground(context, keys, { ...info, ...(await readWanted(context, keys, info)) });
  throw new ShellfleetError(
    'SESSION_NOT_FOUND',
    `There is no session ${keys.session}. \`shellfleet ps\` lists those that there are.`,
    { sessionId: keys.session },
  );
}

/** Returns which host a waiting session wants, if this process can open its spec. */
async function readWanted(
  context: InfoContext,
  keys: SessionKeys,
  { position, noHostReason }: SessionInfo,
): Promise<Pick<SessionInfo, 'needs' | 'wishes'>> {
  if (position === undefined && noHostReason === undefined) return {};
  try {
    const spec = await openSpec(context, keys);
    return spec === undefined ? {} : wantedHost(spec);
  } catch (error) {
    throw toQueueError(error);
  }
}

/** Adds what only the session's host knows: the background processes, and how commands get into the shell. */
async function withBackground(context: InfoContext, keys: SessionKeys, info: SessionInfo): Promise<SessionInfo> {
  const { backgroundUnknown, ...known } = info;
  if (info.hostId === null || !['starting', 'ready', 'busy'].includes(info.state)) return info;
  try {
    const question = { type: 'background' } as const;
    const { processes, way } = await requestFromHost(context, info.hostId, keys, question, {
      timeoutMs: BACKGROUND_WITHIN_MS,
    });
    return { ...known, background: processes, ...(way === undefined ? {} : { way }) };
  } catch (error) {
    // Other errors are ignored, because all other fields are known without the host.
    if (isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE') throw error;
    return info;
  }
}

/** Reads the sessions that exist, in the given order. */
export async function readSessionInfos(context: ListContext, all: readonly SessionKeys[]): Promise<SessionInfo[]> {
  try {
    const kept = await readKept(context);
    const found = await Promise.all(
      all.map(async (keys) => {
        const state = await readStoredSession(context.redis, keys);
        return state === undefined ? [] : [{ keys, state }];
      }),
    );
    const existing = found.flat();
    const hosts = new Set(existing.flatMap(({ state }) => (state.host === '' ? [] : [state.host])));
    const alive = await aliveHosts(context, [...hosts]);
    const placed = existing.map(({ keys, state }) => ({ keys, state, placementClass: classOf(state) }));
    const beats = placed.some(({ state }) => needsHost(state, alive))
      ? await readBeats(context.redis, context.fleet)
      : [];
    const queued = placed.filter(({ state }) => isQueued(state) && state.hasWork);
    const [waiting, atQuota] = await Promise.all([
      readWaiting(context, queued, beats),
      queued.length > 0 ? readAtQuota(context, beats) : undefined,
    ]);
    const needing = placed.filter(
      ({ state, placementClass }) => needsHost(state, alive) && isParticular(placementClass),
    );
    const refusals = await readRefusals(context, needing);
    return placed.map(({ keys, state, placementClass }) => {
      const info: SessionInfo = {
        ...toInfo(keys, state, alive, waiting.get(keys.member)),
        ...toKept(kept.get(keys.session)),
      };
      if (info.position !== undefined && atQuota !== undefined) info.atQuota = atQuota;
      if (placementClass === undefined || !needsHost(state, alive)) return info;
      const reason = noHostReason(placementClass, beats, refusals.get(keys.session));
      if (reason === undefined) return info;
      // When no host is alive, the caller is most often connected to the wrong fleet.
      const where = beats.length === 0 ? ` It is looked for in ${context.place}` : '';
      return { ...info, noHostReason: `${reason}${where}` };
    });
  } catch (error) {
    throw toQueueError(error);
  }
}

/** @internal Tells whether the session waits because no live host has the key that sealed its spec. */
export const lacksSealKey = ({ noHostReason }: SessionInfo) => noHostReason?.includes(' has the seal key ') === true;

/** Returns the tenant's quota of sessions if it holds as many slots. */
async function readAtQuota(
  { redis, namespace, tenant, sessions }: ListContext,
  beats: readonly HostBeat[],
): Promise<SessionInfo['atQuota']> {
  const { maxSessions: limit } = await readTenantQuotas(redis, namespace, tenant);
  if (limit === undefined) return undefined;
  const used = await sessions.countHeld(beats, tenant);
  return used >= limit ? { quota: 'maxSessions', used, limit } : undefined;
}

async function aliveHosts(context: ListContext, hosts: string[]): Promise<Set<string>> {
  const answers = await Promise.all(hosts.map((host) => context.redis.exists(hostKeys(context.namespace, host).alive)));
  return new Set(hosts.filter((_host, index) => answers[index] === 1));
}

const isQueued = (state: StoredSession) => state.phase === 'open' && !state.host;

const needsHost = (state: StoredSession, alive: ReadonlySet<string>) =>
  state.phase === 'open' && !alive.has(state.host);

const isParticular = (placementClass: string | undefined) => parseClass(placementClass ?? '')?.particular === true;

/** Returns the placement class. Returns undefined when the stored value, which is not sealed, is not valid. */
const classOf = ({ placementClass }: StoredSession) =>
  parseClass(placementClass) === undefined ? undefined : placementClass;

function toInfo(
  keys: SessionKeys,
  state: StoredSession,
  alive: ReadonlySet<string>,
  waiting: Waiting | undefined,
): SessionInfo {
  return {
    id: keys.session,
    state: toSessionState(state, alive),
    hostId: state.host || null,
    epoch: state.epoch,
    queuedCommands: state.waiting,
    ...waiting,
    ...(state.running ? { runningCommandId: toCommandId(keys.session, state.running) } : {}),
    ...(state.held ? { heldCommandId: toCommandId(keys.session, state.held) } : {}),
    background: [],
    ...(state.host ? { backgroundUnknown: true as const } : {}),
    ...(state.image === undefined ? {} : { image: state.image.name, imageDigest: state.image.digest }),
    ...(state.node === '' ? {} : { node: state.node }),
    ...(state.host === '' || state.waitsFor === '' ? {} : { waitsFor: state.waitsFor }),
    ...toStart(state.start),
    labels: parsePlacement(state.placement)?.labels ?? {},
    createdAt: toTime(state.createdAt),
    lastActiveAt: toTime(state.activeAt),
    ...(state.phase === 'closed' ? toClosing(state) : {}),
  };
}

/** Parses the field, which is not sealed. Unknown words count as absent. */
function toStart(text: string): Pick<SessionInfo, 'start' | 'coldReason'> {
  const [start, reason] = text.split(' ');
  if (start === 'warm') return { start };
  const coldReason = COLD_REASONS.find((known) => known === reason);
  return start === 'cold' && coldReason !== undefined ? { start, coldReason } : {};
}

function toKept(kept: readonly ListedKept[] | undefined): Pick<SessionInfo, 'kept'> {
  return kept === undefined ? {} : { kept: kept.map(({ generation: _, ...rest }) => rest) };
}

/** Returns when and why the session was closed. Workers of older versions recorded neither. */
function toClosing({ closedAt, closedWith }: StoredSession): Pick<SessionInfo, 'closedAt' | 'closeReason'> {
  if (closedAt === 0) return {};
  const data = tryJson(closedWith) as { reason?: unknown } | null | undefined;
  const reason = typeof data?.reason === 'string' && data.reason !== '' ? data.reason : 'a caller closed it';
  return { closedAt: toTime(closedAt), closeReason: reason };
}

function toSessionState(state: StoredSession, alive: ReadonlySet<string>): SessionState {
  if (state.phase === 'closed') return 'closed';
  if (state.phase === 'closing') return 'closing';
  if (!state.host) return state.status === 'lost' ? 'lost' : 'queued';
  // A host without a heartbeat is unreachable for every process, so the state is the same for every reader.
  if (!alive.has(state.host)) return 'unreachable';
  if (state.running) return 'busy';
  return state.status === 'ready' ? 'ready' : 'starting';
}

const toTime = (ms: number) => new Date(ms).toISOString();
