import { noHostReason, PLACEMENT_CLASSES } from '@shellfleet/admission';
import { toQueueError } from '@shellfleet/mailbox';
import {
  hostKeys,
  isShellfleetError,
  type SessionInfo,
  type SessionKeys,
  type SessionState,
  ShellfleetError,
  sessionJobId,
  toCommandId,
} from '@shellfleet/protocol';
import type { Producer } from '../producer.ts';
import { askHost } from '../submit/ask-host.ts';
import { readBeats, readWaitingLines, type WaitingLine } from './waiting-line.ts';

const BACKGROUND_WITHIN_MS = 1_000;

const FIELDS = ['life', 'status', 'host', 'run', 'epoch', 'created', 'active', 'class'] as const;
type StateFields = { [name in (typeof FIELDS)[number]]: string | null };

/** Throws SESSION_NOT_FOUND. */
export async function readSessionInfo(producer: Producer, keys: SessionKeys): Promise<SessionInfo> {
  const [info] = await readSessionInfos(producer, [keys]);
  if (info !== undefined) return withBackground(producer, keys, info);
  throw new ShellfleetError(
    'SESSION_NOT_FOUND',
    `There is no session ${keys.session}. \`shellfleet ps\` lists those that there are.`,
    { sessionId: keys.session },
  );
}

/** What runs in the background is known to the shell alone, so its host is asked. */
async function withBackground(producer: Producer, keys: SessionKeys, info: SessionInfo): Promise<SessionInfo> {
  const { backgroundUnknown, ...known } = info;
  if (info.hostId === null || !['starting', 'ready', 'busy'].includes(info.state)) return info;
  try {
    const question = { type: 'background' } as const;
    const background = await askHost(producer, info.hostId, keys, question, { timeoutMs: BACKGROUND_WITHIN_MS });
    return { ...known, background };
  } catch (error) {
    // Everything else of the session is known all the same.
    if (isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE') throw error;
    return info;
  }
}

/** Infos of those that exist, in the given order. */
export async function readSessionInfos(producer: Producer, all: readonly SessionKeys[]): Promise<SessionInfo[]> {
  try {
    const known = await Promise.all(
      all.map(async (keys) => {
        const [values, queued] = await Promise.all([
          producer.redis.hmget(keys.state, ...FIELDS),
          producer.redis.llen(keys.queue),
        ]);
        const state = Object.fromEntries(FIELDS.map((name, index) => [name, values[index] ?? null])) as StateFields;
        return { keys, state, queued };
      }),
    );
    const there = known.filter(({ state }) => state.life !== null);
    const hosts = new Set(there.flatMap(({ state }) => (state.host ? [state.host] : [])));
    const alive = await aliveHosts(producer, [...hosts]);
    const homeless = there.filter(({ state }) => needsHost(state, alive));
    const beats = homeless.length > 0 ? await readBeats(producer) : [];
    const waiting = homeless.filter(({ state, queued }) => isQueued(state) && queued > 0);
    const lines = await readWaitingLines(
      producer,
      new Set(waiting.flatMap(({ state }) => classOf(state) ?? [])),
      beats,
    );
    return there.map(({ keys, state, queued }) => {
      const name = classOf(state);
      const reason = name !== undefined && needsHost(state, alive) ? noHostReason(name, beats) : undefined;
      const line = name !== undefined && isQueued(state) ? lines.get(name) : undefined;
      const info = toInfo(keys, state, queued, alive, line);
      return reason === undefined ? info : { ...info, noHostReason: reason };
    });
  } catch (error) {
    throw toQueueError(error);
  }
}

async function aliveHosts(producer: Producer, hosts: string[]): Promise<Set<string>> {
  const answers = await Promise.all(
    hosts.map((host) => producer.redis.exists(hostKeys(producer.namespace, host).alive)),
  );
  return new Set(hosts.filter((_host, index) => answers[index] === 1));
}

const isQueued = (state: StateFields) => state.life === 'open' && !state.host;

/** It has no host, or one that is not alive. */
const needsHost = (state: StateFields, alive: ReadonlySet<string>) =>
  state.life === 'open' && !(state.host && alive.has(state.host));

/** Undefined when the copy in clear is not valid. */
const classOf = (state: StateFields) => PLACEMENT_CLASSES.find((name) => name === state.class);

function toInfo(
  keys: SessionKeys,
  state: StateFields,
  queuedCommands: number,
  alive: ReadonlySet<string>,
  line: WaitingLine | undefined,
): SessionInfo {
  const position = line?.positionOf(sessionJobId(keys.tenant, keys.session));
  const etaMs = position === undefined ? undefined : line?.etaOf(position);
  return {
    id: keys.session,
    state: toSessionState(state, alive),
    hostId: state.host || null,
    epoch: Number(state.epoch ?? 0),
    queuedCommands,
    ...(position === undefined ? {} : { position }),
    ...(etaMs === undefined ? {} : { etaMs }),
    ...(state.run ? { runningCommandId: toCommandId(keys.session, state.run) } : {}),
    background: [],
    ...(state.host ? { backgroundUnknown: true as const } : {}),
    createdAt: toTime(state.created),
    lastActiveAt: toTime(state.active),
  };
}

function toSessionState(state: StateFields, alive: ReadonlySet<string>): SessionState {
  if (state.life === 'closed') return 'closed';
  if (state.life === 'closing') return 'closing';
  if (!state.host) return state.status === 'lost' ? 'lost' : 'queued';
  // Its host is out of reach for everybody, whoever notices first.
  if (!alive.has(state.host)) return 'unreachable';
  if (state.run) return 'busy';
  return state.status === 'ready' ? 'ready' : 'starting';
}

const toTime = (ms: string | null) => new Date(Number(ms ?? 0)).toISOString();
