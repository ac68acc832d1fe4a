import { type SessionKeys, terminalKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

/** Message of a terminal, sealed for its number. */
export interface TerminalMessage {
  number: number;
  sealed: string;
}

/** Reads the last message numbers in and out, and the raw output offset, until the terminal expires. */
export async function readTerminalProgress(
  redis: Redis,
  keys: SessionKeys,
  terminal: string,
): Promise<{ input: number; output: number; rawTo: number } | undefined> {
  const key = terminalKeys(keys, terminal).terminal;
  const [input, output, rawTo] = await redis.hmget(key, 'input', 'output', 'rawTo').catch(throwQueueError);
  if (!input) return undefined;
  return { input: Number(input), output: Number(output), rawTo: Number(rawTo) };
}

/** Reads up to `count` messages to the terminal after the message `after`. Throws QUEUE_UNAVAILABLE. */
export function readTerminalInput(redis: Redis, keys: SessionKeys, terminal: string, after: number, count: number) {
  return readMessages(redis, terminalKeys(keys, terminal).input, after, count);
}

/** Reads up to `count` messages to the terminal's user after the message `after`. Throws QUEUE_UNAVAILABLE. */
export function readTerminalOutput(redis: Redis, keys: SessionKeys, terminal: string, after: number, count: number) {
  return readMessages(redis, terminalKeys(keys, terminal).output, after, count);
}

async function readMessages(redis: Redis, key: string, after: number, count: number): Promise<TerminalMessage[]> {
  const entries = await redis.xrange(key, `(${after}-0`, '+', 'COUNT', count).catch(throwQueueError);
  return entries.map(([id, [, sealed = '']]) => ({ number: Number.parseInt(id, 10), sealed }));
}
