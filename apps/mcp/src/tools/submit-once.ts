import { SdkError, SdkErrorCode } from '@modelcontextprotocol/server';
import { type Command, type RunOptions, type Session, ShellfleetError } from '@shellfleet/client';
import type { z } from 'zod';
import type { execArguments } from './exec.ts';
import type { ToolCall } from './tool-call.ts';

const BOTH = 'stdin and open_stdin: give one of the two.';

/**
 * Submits the command of a call. Returns the command of the first call if a client repeats the call after it asked its
 * person. A cancelled call cancels its command; after a lost connection the command continues.
 */
export async function submitOnce(
  call: ToolCall,
  session: Session,
  args: z.output<typeof execArguments>,
): Promise<Command> {
  const command =
    call.commandId === undefined
      ? await session.submit(args.command, toOptions(args))
      : await call.fleet.command(call.commandId);
  const cancel = () => {
    if (!isLost(call.signal.reason)) void command.cancel('The MCP client cancelled the call.').catch(() => {});
  };
  if (call.signal.aborted) cancel();
  else call.signal.addEventListener('abort', cancel, { once: true });
  return command;
}

function toOptions({ timeout_ms, cwd, env, stdin, open_stdin, escalate }: z.output<typeof execArguments>): RunOptions {
  if (stdin !== undefined && open_stdin) throw new ShellfleetError('COMMAND_INVALID', BOTH);
  return {
    timeoutMs: timeout_ms,
    cwd,
    env,
    stdin: open_stdin ? { open: true } : stdin,
    escalate: escalate === undefined ? undefined : { justification: escalate },
  };
}

const isLost = (reason: unknown) => reason instanceof SdkError && reason.code === SdkErrorCode.ConnectionClosed;
