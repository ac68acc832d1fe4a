import { setTimeout as delay } from 'node:timers/promises';
import {
  ensureShellfleetError,
  parseOrThrow,
  type ShellfleetError,
  sessionKeys,
  type WorkerLogPosition,
  workerLogPositionSchema,
} from '@shellfleet/protocol';
import { refuseUnknownHost } from './known-host.ts';
import { type RequestContext, requestFromHost } from './request-from-host.ts';

export interface HostLogOptions {
  /** Only lines after this one, the `position` of a line. */
  after?: string | undefined;
  /** Only lines from this time on, by the clock of the host. */
  since?: Date | undefined;
  /** Only this number of lines, the last ones. */
  tail?: number | undefined;
  /** Whether to continue with lines that are logged later. */
  follow?: boolean | undefined;
  /** Ends the iteration with its reason. */
  signal?: AbortSignal | undefined;
  /**
   * Is called when the host, which replied before, does not reply. The iteration continues when it does again, with
   * `follow` only.
   */
  onUnreachable?: ((error: ShellfleetError) => void) | undefined;
}

/** A line of the log of a host's worker. */
export interface HostLogLine {
  /** The line: JSON with the fields of docs/telemetry.md. */
  text: string;
  /** Position of the line: `hostLog({ after })` continues after it. */
  position: string;
  /** Number of lines before this one that were asked for, and that the host does not keep any more. */
  missed?: number;
  /** True for the first line of a process after lines of another one. */
  restarted?: true;
}

interface LogContext extends RequestContext {
  readonly tenant: string;
}

const ASK_AGAIN_MS = 1_000;

/** Yields the last lines of the log of a host's worker. */
export async function* readHostLog(
  context: LogContext,
  host: string,
  options: HostLogOptions,
): AsyncGenerator<HostLogLine> {
  const { since, tail, follow = false, signal } = options;
  await refuseUnknownHost(context, host);
  const keys = sessionKeys(context.namespace, context.tenant, '');
  const ask = (after: WorkerLogPosition | undefined, waits: boolean) => {
    const range = after === undefined ? { ...(since && { since: +since }), tail } : { after };
    return requestFromHost(context, host, keys, { type: 'worker-log', ...range, waits }, { signal });
  };
  let after = options.after === undefined ? undefined : parsePosition(options.after);
  let isFirst = true;
  for (;;) {
    const page = isFirst ? await ask(after, false) : await askUntilReply(() => ask(after, follow), options);
    isFirst = false;
    const restarted = after !== undefined && after.boot !== page.next.boot;
    const firstLine = page.next.line - page.lines.length + 1;
    for (const [index, text] of page.lines.entries()) {
      const line = { text, position: toPosition({ ...page.next, line: firstLine + index }) };
      const isOpening = index === 0;
      yield {
        ...line,
        ...(isOpening && page.missed > 0 && { missed: page.missed }),
        ...(isOpening && restarted && { restarted }),
      };
    }
    after = page.next;
    if (!follow && !page.more) return;
  }
}

/** Repeats a request while the host does not reply. */
async function askUntilReply<T>(ask: () => Promise<T>, { follow, signal, onUnreachable }: HostLogOptions): Promise<T> {
  for (let isReported = false; ; isReported = true) {
    signal?.throwIfAborted();
    try {
      return await ask();
    } catch (thrown) {
      const error = ensureShellfleetError(thrown);
      if (follow !== true || signal?.aborted || !error.retryable) throw thrown;
      if (!isReported) onUnreachable?.(error);
      await delay(ASK_AGAIN_MS, undefined, { signal });
    }
  }
}

const toPosition = ({ boot, line }: WorkerLogPosition) => `${boot}:${line}`;

function parsePosition(text: string): WorkerLogPosition {
  const [boot, line, ...rest] = text.split(':');
  const position = { boot, line: rest.length > 0 || !line ? Number.NaN : Number(line) };
  return parseOrThrow(workerLogPositionSchema, position, 'COMMAND_INVALID', 'The position in the log');
}
