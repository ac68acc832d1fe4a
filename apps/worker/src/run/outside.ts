import type { CommandPayload, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { EntryResult, EntryRun } from './entry-run.ts';
import type { SessionContext } from './session-context.ts';

/** The wider sandbox of a session's commands. What may leave, and when, is decided before. */
export interface Outside {
  /** Why none of them can leave the session's sandbox, the end of a sentence; undefined when they can. */
  readonly refusal: string | undefined;
  /** The wider sandbox. Undefined: none of them can leave. */
  readonly sandbox: ResolvedSessionSpec['sandbox'];
  /**
   * Runs one command in a shell of its own in the wider sandbox, which is removed afterwards. The shell
   * of the session has to be ready and idle, and is kept. What keeps the wider one from starting is an error in the
   * Result: then nothing was run.
   */
  run(run: EntryRun, payload: CommandPayload, session: SessionContext): Promise<EntryResult>;
}
