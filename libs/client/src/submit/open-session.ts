import { open, readSealedSpec } from '@shellfleet/mailbox';
import { placementClass, toPlacement, toPlacementJson } from '@shellfleet/placement';
import {
  parseOrThrow,
  type ResolvedSessionSpec,
  type SessionId,
  type SessionKeys,
  type SessionSpec,
  ShellfleetError,
  sessionIdSchema,
  sessionSpecSchema,
  specSchema,
  toCanonicalJson,
  toShortSpec,
} from '@shellfleet/protocol';
import { type Sealer, sealMarkOf, sealPlace } from '@shellfleet/sealing';
import { z } from 'zod';
import type { Feeds } from '../connection/feeds.ts';
import type { SendWindow } from '../queue/send-window.ts';
import { warn } from '../warn.ts';
import type { LostSessions } from './lost-sessions.ts';
import { type IndexContext, type NotedSession, noteInIndex } from './note-in-index.ts';
import { specDifference } from './spec-difference.ts';

export interface OpenSession extends NotedSession {
  id: string;
  generation: string;
  spec: ResolvedSessionSpec;
  /** The part of the spec that every submit needs. */
  bounds: CommandBounds;
  /** Schema version and seal key of the stored spec (sealMarkOf). */
  sealedWith: string;
  driven: boolean;
  /** Whether this call recorded the session. */
  created: boolean;
}

type CommandBounds = Pick<ResolvedSessionSpec, 'commandTimeoutMs'> & {
  output: Pick<ResolvedSessionSpec['output'], 'streamBytes'>;
};

export interface OpenContext extends IndexContext {
  readonly sealer: Sealer;
  readonly window: SendWindow;
  readonly feeds: Feeds;
  readonly lost: Pick<LostSessions, 'noticed' | 'beforeGeneration'>;
  keysOf(sessionId: string): SessionKeys;
}

/** Longest wait for the close of the previous session of the id, which runs shutdown commands and frees its sandbox. */
const ENDING_MS = 60_000;

const idSchema = z.object({ id: sessionIdSchema });
const requestSchema = z.object({ id: sessionIdSchema, spec: sessionSpecSchema });

/** How a session is opened. */
export interface SessionOptions {
  /**
   * Whether the session depends on this process. When no process that opened it with `driven: true` is alive any more,
   * the session is closed within 10 s, or later when it has finished its accepted commands. No effect if it is already
   * open without `driven`.
   * @default false
   */
  driven?: boolean | undefined;
}

/** Records a session, or attaches to the open one of this id. Without a spec, any open session fits. */
export async function openSession(
  context: OpenContext,
  id: string,
  spec?: SessionSpec,
  { driven = false }: SessionOptions = {},
): Promise<OpenSession> {
  const request = parseRequest(id, spec);
  const keys = context.keysOf(request.id);
  await context.lost.beforeGeneration(keys);
  if (request.spec !== undefined) await checkSecrets(request.spec);
  const tryOpen = async (): Promise<OpenSession | undefined> => {
    if (request.spec === undefined && !driven) {
      const found = await findGeneration(context, keys, ['open']);
      if (found !== undefined) return found;
    }
    return record(context, keys, request.spec ?? sessionSpecSchema.parse({}), request.spec !== undefined, driven);
  };
  return (await tryOpen()) ?? afterPreviousGeneration(context, keys, tryOpen);
}

/** Parses a request. The large schema of specs is used only if there is a spec, because most calls have none. */
function parseRequest(id: string, spec: SessionSpec | undefined): { id: SessionId; spec?: ResolvedSessionSpec } {
  if (spec === undefined) return parseOrThrow(idSchema, { id }, 'SESSION_SPEC_INVALID', 'The session');
  return parseOrThrow(requestSchema, { id, spec }, 'SESSION_SPEC_INVALID', 'The session');
}

/** Checks rules and secrets. Without any, the package that compiles them is not loaded, because it is large. */
async function checkSecrets(spec: ResolvedSessionSpec): Promise<void> {
  if (spec.redaction.length === 0 && Object.keys(spec.secrets).length === 0) return;
  const { unmaskedSecrets, validateRedaction } = await import('@shellfleet/policy');
  validateRedaction(spec);
  for (const { secret, message } of unmaskedSecrets(spec.secrets)) warn(`The secret ${secret} ${message}.`);
}

/** Returns the newest generation of a session, closed or not. Writes nothing. */
export function attachSession(context: OpenContext, id: string): Promise<OpenSession | undefined> {
  const request = parseRequest(id, undefined);
  return findGeneration(context, context.keysOf(request.id), ['open', 'closing', 'closed'], 'no-spec');
}

/** Records a session again that Redis has lost, with the same spec, under a new generation. */
export async function reopenAfterLoss(context: OpenContext, session: OpenSession): Promise<void> {
  const opened = await record(context, session.keys, session.spec, true, session.driven);
  if (opened !== undefined) Object.assign(session, { generation: opened.generation, sealedWith: opened.sealedWith });
}

/** Records the session. Returns undefined while the previous session of the id is still closing. */
async function record(
  context: OpenContext,
  keys: SessionKeys,
  spec: ResolvedSessionSpec,
  specMatters: boolean,
  driven: boolean,
): Promise<OpenSession | undefined> {
  const canonical = toCanonicalJson(spec);
  const short = toShortSpec(spec);
  const seal = (generation: string) =>
    context.sealer.seal(short, sealPlace('spec', keys, { generation }), specSchema(spec));
  const digest = context.sealer.digest(canonical);
  const sealedWith = sealMarkOf(seal(''));
  const placement = toPlacement(spec, sealedWith);
  const clear = { placementClass: placementClass(placement), json: toPlacementJson(placement) };
  const opened = await context.window.enter(() => open(context.redis, keys, seal, digest, 'same-spec', clear, driven));
  switch (opened.type) {
    case 'created':
    case 'attached': {
      const session = {
        id: keys.session,
        keys,
        generation: opened.generation,
        spec,
        bounds: spec,
        sealedWith,
        driven: driven && opened.driven,
        created: opened.type === 'created',
        indexedAt: 0,
      };
      noteInIndex(context, session);
      return session;
    }
    case 'closing':
      return undefined;
    case 'conflict': {
      const found = await findGeneration(context, keys, ['open']);
      // The session was closed after the conflict was found.
      if (found === undefined) return record(context, keys, spec, specMatters, driven);
      const fields = specDifference(spec, found.spec);
      // Equal specs with different digests were sealed with different keys.
      if (!specMatters || fields.length === 0) return found;
      throw new ShellfleetError(
        'SESSION_CONFLICT',
        `Session ${keys.session} is open with another spec (different: ${fields.join(', ')}). Close it first, attach to it without a spec, or use another id.`,
        { sessionId: keys.session, fields },
      );
    }
  }
}

/** Returns the newest generation if its phase is one of `states`. */
async function findGeneration(
  context: OpenContext,
  keys: SessionKeys,
  states: readonly string[],
  needs: 'spec' | 'no-spec' = 'spec',
): Promise<OpenSession | undefined> {
  const found = await context.window.enter(() => readSealedSpec(context.redis, keys));
  if (found === undefined || !states.includes(found.phase)) return undefined;
  const place = sealPlace('spec', keys, { generation: found.generation });
  const read = once((): unknown => JSON.parse(context.sealer.open(found.spec, place)));
  const parse = once(() => sessionSpecSchema.parse(read()));
  const sealedWith = sealMarkOf(found.spec);
  const { generation } = found;
  const known = { id: keys.session, keys, generation, sealedWith, driven: false, created: false, indexedAt: 0 };
  // A process without the key can still read and close a session, but its uses of the spec throw.
  if (needs === 'spec') read();
  return {
    ...known,
    get spec() {
      return parse();
    },
    get bounds() {
      const spec = read();
      // An older version's spec may lack a field, which the schema fills in.
      return hasBounds(spec) ? spec : parse();
    },
  };
}

function hasBounds(spec: unknown): spec is CommandBounds {
  const { commandTimeoutMs, output } = spec as { commandTimeoutMs?: unknown; output?: { streamBytes?: unknown } };
  return typeof commandTimeoutMs === 'number' && typeof output?.streamBytes === 'number';
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

async function afterPreviousGeneration(
  context: OpenContext,
  keys: SessionKeys,
  tryOpen: () => Promise<OpenSession | undefined>,
): Promise<OpenSession> {
  using wake = await context.feeds.follow(keys.feed);
  // A wall clock that is set must not change how long this waits.
  const deadline = performance.now() + ENDING_MS;
  while (performance.now() < deadline) {
    const session = await tryOpen();
    if (session !== undefined) return session;
    await wake.next();
  }
  throw new ShellfleetError(
    'SESSION_CLOSED',
    `Session ${keys.session} is still closing after ${ENDING_MS / 1000} s. Try again, or use another id.`,
    { sessionId: keys.session },
    { retryable: true },
  );
}
