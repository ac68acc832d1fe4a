import type { CommandPayload, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { EntryResult, EntryRun } from './entry-run.ts';
import type { SessionContext } from './session-context.ts';

/** The wider sandbox of a session's commands, for those that may leave. */
export interface WiderSandbox {
  /** Why no command can leave the session's sandbox, as the end of a sentence. Undefined if commands can. */
  readonly refusal: string | undefined;
  /** The wider sandbox. Undefined when no command can leave. */
  readonly sandbox: ResolvedSessionSpec['sandbox'];
  /** Runs one command in a fresh shell while the session's shell is idle. The Result reports a failure to start. */
  run(run: EntryRun, payload: CommandPayload, session: SessionContext): Promise<EntryResult>;
}
