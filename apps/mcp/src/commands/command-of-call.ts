import type { Command, Session } from '@shellfleet/client';
import { z } from 'zod';
import type { ToolCall } from '../tools/tool-call.ts';
import { findSessionOf } from './session-of-call.ts';

/** The argument `command_id` of tools about one command. */
export const commandArgument = z.string().describe('Id of the command, as exec returned it.');

/** Finds a command by its id, and its session. Rejects with COMMAND_INVALID, RESULT_EXPIRED or SESSION_NOT_FOUND. */
export async function findCommandOf(call: ToolCall, id: string): Promise<{ command: Command; session: Session }> {
  const command = await call.fleet.command(id);
  return { command, session: await findSessionOf(call, command.sessionId) };
}
