import type { CommandPayload, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { EntryResult, EntryRun } from './entry-run.ts';
import type { SessionContext } from './session-context.ts';

/** The wider sandbox of a session's commands, for those that may leave. */
export interface WiderSandbox {
  /** Why no command can leave the session's sandbox, if so, as the end of a sentence. */
  readonly refusal: string | undefined;
  /** The wider sandbox. Undefined when no command can leave. */
  readonly sandbox: ResolvedSessionSpec['sandbox'];
  /** Runs one command in a fresh shell, while the session's is idle. Its failure to start is an error in the Result. */
  run(run: EntryRun, payload: CommandPayload, session: SessionContext): Promise<EntryResult>;
}
