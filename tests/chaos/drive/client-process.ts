// A client in its own process, which faults kill, stop and restart. It records each observation before it goes on.
import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Fleet, isShellfleetError, type Session, type SessionSpec } from '@shellfleet/client';
import { createRandom } from '../../support/random.ts';
import type { ClientEvent, Operation } from '../history/history.ts';
import { operationsOf, seedOf } from '../plan/operations.ts';
import type { ClientSession, ClientTask } from './client-task.ts';
import { readOutput } from './read-output.ts';
import { toSeenResult } from './seen-result.ts';

const task: ClientTask = JSON.parse(process.argv[2] ?? '{}');
/** Greatest number of commands in one session that have no Result yet. */
const MOST_OPEN = 6;
const RETRY_AFTER_MS = 250;
const SESSION_GONE = ['SESSION_NOT_FOUND', 'SESSION_CLOSED'];

type NewEvent = ClientEvent extends infer Event ? (Event extends unknown ? Omit<Event, 'at'> : never) : never;

let lastExplanation = '';
const before = readHistory();
const fleet = await untilReachable(() =>
  Fleet.connect({ redisUrl: task.redisUrl, namespace: task.namespace, sealKeys: [task.sealKey] }),
);
await Promise.all(task.sessions.map(drive));
await fleet.close();
process.exit(0);

function readHistory(): Map<string, ClientEvent[]> {
  let text = '';
  try {
    text = readFileSync(task.historyPath, 'utf8');
  } catch {
    return new Map();
  }
  // The last line may have been cut by the death of this client.
  const events = text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as ClientEvent];
    } catch {
      return [];
    }
  });
  if (!text.endsWith('\n')) appendFileSync(task.historyPath, '\n');
  return Map.groupBy(events, ({ op }) => op);
}

function record(event: NewEvent): void {
  appendFileSync(task.historyPath, `${JSON.stringify({ at: Date.now(), ...event })}\n`);
}

async function drive({ id, spec }: ClientSession): Promise<void> {
  const opened = { session: await openSession(id, spec) };
  const random = createRandom(seedOf(task.seed, `${id} readers`));
  const open = new Set<Promise<void>>();
  for (const operation of operationsOf(task.seed, id)) {
    const seen = before.get(operation.id);
    if (seen?.some(({ type }) => type === 'result' || type === 'expired')) continue;
    if (seen === undefined && Date.now() > task.until) break;
    const accepted = seen?.find((event) => event.type === 'accepted');
    const command =
      accepted?.type === 'accepted' ? await find(accepted.commandId, operation) : await submit(opened, spec, operation);
    if (command === undefined) continue;
    const end = follow(command, operation, () => random.next()).finally(() => open.delete(end));
    open.add(end);
    if (accepted !== undefined) continue;
    if (operation.waits) await end;
    else await delay(operation.pauseMs);
    while (open.size >= MOST_OPEN) await Promise.race(open);
  }
  await Promise.all(open);
}

/** Submits a command, and repeats that with the same idempotency key until it is accepted or refused for good. */
async function submit(
  opened: { session: Session },
  spec: SessionSpec,
  operation: Operation,
): Promise<Command | undefined> {
  const { id, script, stdin } = operation;
  record({ type: 'submit', op: id });
  for (;;) {
    try {
      const command = await opened.session.submit(script, {
        idempotencyKey: id,
        timeoutMs: 120_000,
        ...(stdin === undefined ? {} : { stdin }),
      });
      record({ type: 'accepted', op: id, commandId: command.id });
      return command;
    } catch (error) {
      const { code, retryable } = describeError(error);
      record({ type: 'refused', op: id, code, retryable });
      explainRetry(error);
      // Opens a session again that Redis lost with its newest writes.
      if (SESSION_GONE.includes(code)) opened.session = await openSession(operation.session, spec);
      else if (!retryable) return undefined;
      await delay(RETRY_AFTER_MS);
    }
  }
}

function openSession(id: string, spec: SessionSpec): Promise<Session> {
  return untilReachable(() => fleet.session(id, spec));
}

async function find(commandId: string, { id }: Operation): Promise<Command | undefined> {
  return untilReachable(() => fleet.command(commandId)).catch((error: unknown) => {
    if (describeError(error).code !== 'RESULT_EXPIRED') throw error;
    record({ type: 'expired', op: id });
    return undefined;
  });
}

async function follow(command: Command, operation: Operation, random: () => number): Promise<void> {
  const reading = readOutput(command, operation.reader, random).then(
    (output) => output,
    () => undefined,
  );
  try {
    const result = await untilReachable(() => command.result());
    // The output is recorded before the Result, because a client that has recorded the Result does not read again.
    const output = await reading;
    if (output !== undefined) record({ type: 'output', op: operation.id, ...output });
    record({ type: 'result', op: operation.id, result: toSeenResult(result) });
  } catch (error) {
    if (describeError(error).code !== 'RESULT_EXPIRED') throw error;
    record({ type: 'expired', op: operation.id });
  }
}

async function untilReachable<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!describeError(error).retryable) throw error;
      explainRetry(error);
      await delay(RETRY_AFTER_MS);
    }
  }
}

/** Prints why a call is repeated, for the report of a round that does not end. */
function explainRetry(error: unknown): void {
  const explanation = String(error);
  if (explanation === lastExplanation) return;
  lastExplanation = explanation;
  console.error(explanation);
}

function describeError(error: unknown): { code: string; retryable: boolean } {
  if (isShellfleetError(error)) return { code: error.code, retryable: error.retryable };
  throw error;
}
