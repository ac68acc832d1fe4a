import { ShellfleetError } from '@shellfleet/protocol';
import type { ToolCall } from '../tools/tool-call.ts';

/**
 * Runs a step of a call until the call has to be answered. The signal then aborts with HOST_UNREACHABLE, whose message
 * begins with `why`.
 */
export async function withinAnswer<T>(
  { signal, deadline }: ToolCall,
  why: string,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const giveUp = () => late.abort(new ShellfleetError('HOST_UNREACHABLE', `${why} Try again later.`));
  const timer = setTimeout(giveUp, Math.max(0, deadline - Date.now()));
  try {
    return await run(AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}
