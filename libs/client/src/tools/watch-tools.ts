import {
  type ToolCallEvent,
  type ToolEvent,
  type ToolInfo,
  toolCallEventSchema,
  toolEventsKey,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import { listTools } from './list-tools.ts';
import type { ToolCallContext } from './tool-context.ts';

const PAGE = 500;

/**
 * Yields each offered tool as `tool.added`, then each change of the tools, and the calls of this tenant from now on.
 */
export async function* watchTools(
  context: ToolCallContext,
  signal: AbortSignal | undefined,
): AsyncGenerator<ToolEvent> {
  signal?.throwIfAborted();
  const key = toolEventsKey(context.fleet, context.tenant);
  using wake = await context.feeds.follow(key);
  const read = <T>(call: () => Promise<T>) =>
    retryWhileRedisIsDown(call, signal, { errorReplies: 'throw', waitBeforeRetry: () => wake.next(signal) });
  let last = await read(() => newestOf(context, key));
  let known = new Map<string, ToolInfo>();
  for (;;) {
    const tools = await read(() => listTools(context));
    const now = new Map(tools.map((tool) => [tool.name, tool]));
    yield* differences(known, now);
    known = now;
    const { events, next } = await read(() => readEvents(context, key, last));
    yield* events;
    last = next;
    // After a full page there may be more events, which are read without a wait.
    if (events.length < PAGE) await wake.next(signal);
  }
}

function* differences(before: Map<string, ToolInfo>, now: Map<string, ToolInfo>): Generator<ToolEvent> {
  for (const [name, tool] of now) {
    const known = before.get(name);
    if (known === undefined) yield { type: 'tool.added', tool };
    else if (JSON.stringify(known) !== JSON.stringify(tool)) yield { type: 'tool.changed', tool };
  }
  for (const name of before.keys()) if (!now.has(name)) yield { type: 'tool.removed', name };
}

async function newestOf({ redis }: ToolCallContext, key: string): Promise<string> {
  const [newest] = await redis.xrevrange(key, '+', '-', 'COUNT', 1);
  return newest?.[0] ?? '0-0';
}

async function readEvents({ redis }: ToolCallContext, key: string, after: string) {
  const entries = await redis.xrange(key, `(${after}`, '+', 'COUNT', PAGE);
  const events = entries.map(([, fields]) => parseEvent(fields[1])).filter((event) => event !== undefined);
  return { events, next: entries.at(-1)?.[0] ?? after };
}

function parseEvent(text: string | undefined): ToolCallEvent | undefined {
  try {
    return toolCallEventSchema.parse(JSON.parse(text ?? ''));
  } catch {
    return undefined;
  }
}
