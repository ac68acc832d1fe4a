import type { ServerContext } from '@modelcontextprotocol/server';
import type { Person } from '../approvals/person.ts';
import type { OpenFleet } from '../connections/connection.ts';
import type { McpSettings } from '../settings.ts';

/** One call of a tool. */
export interface ToolCall extends OpenFleet {
  settings: McpSettings;
  defaultSession: string | undefined;
  /** Aborts when the client cancels the call, and when its connection is lost. */
  signal: AbortSignal;
  /** Time (ms) by which the call has to be answered. */
  deadline: number;
  /** Whether the client wants to know how the call proceeds. */
  wantsProgress: boolean;
  /** Tells the client how the call proceeds. */
  progress(message: string): Promise<void>;
  /** The person at the client. */
  person: Person;
  /** The command of the first call, if the client repeats the call after it asked its person. */
  commandId: string | undefined;
}

/** Returns a function that sends progress. The numbers rise, as the protocol demands, and have no other meaning. */
export function progressOf({ mcpReq }: ServerContext): Pick<ToolCall, 'wantsProgress' | 'progress'> {
  const token = mcpReq._meta?.progressToken;
  if (token === undefined) return { wantsProgress: false, progress: async () => {} };
  let progress = 0;
  return {
    wantsProgress: true,
    progress: async (message) => {
      progress += 1;
      const params = { progressToken: token, progress, message };
      // A client that is gone needs no progress.
      await mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
    },
  };
}
