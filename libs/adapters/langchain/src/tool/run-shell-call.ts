import { isShellfleetError, type ModelTextOptions, type Result, type Session, toModelText } from '@shellfleet/client';
import type { ShellInput } from './shell-input.ts';

/** Text for the model, with what programs need. */
export interface ShellAnswer {
  text: string;
  status: 'success' | 'error';
  artifact: Record<string, unknown>;
}

/** The circumstances of a call. */
export interface ShellCallContext {
  /** Key by which a call that is repeated after a crash is recognised. */
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Bounds of the output, for the notes on truncation. */
  output?: ModelTextOptions['output'];
}

/**
 * Executes one call of the tool. An error that a model can correct is an answer with the status `error`. An error that
 * the caller has to deal with, such as a queue out of reach, is thrown.
 */
export async function runShellCall(
  { command, restart }: ShellInput,
  open: () => Promise<Session>,
  context: ShellCallContext,
): Promise<ShellAnswer> {
  if (restart) return restartShell(await open());
  if (!command) return refusal("Shell tool expects a 'command' string when restart is not requested.");
  const session = await open();
  try {
    const result = await runUntilAborted(session, command, context);
    return toModelText(result, { output: context.output, canEscalate: false });
  } catch (error) {
    if (isShellfleetError(error) && error.code === 'COMMAND_INVALID') return refusal(`Error: ${error.message}`);
    throw error;
  }
}

async function restartShell(session: Session): Promise<ShellAnswer> {
  try {
    await session.restart();
    return { text: 'Shell session restarted.', status: 'success', artifact: {} };
  } catch (error) {
    return refusal('Failed to restart shell session.', {
      reason: String(error instanceof Error ? error.message : error),
    });
  }
}

const refusal = (text: string, artifact = {}): ShellAnswer => ({ text, status: 'error', artifact });

/** Runs a command, and cancels it when the signal is aborted: the agent that wanted its output is gone. */
async function runUntilAborted(
  session: Session,
  script: string,
  { idempotencyKey, signal }: ShellCallContext,
): Promise<Result> {
  const command = await session.submit(script, { idempotencyKey, signal });
  const cancel = () => void command.cancel('The run of the agent was aborted.').catch(() => {});
  if (signal?.aborted) cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    return await command.result({ signal });
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
}
