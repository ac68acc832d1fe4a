import type { CallToolResult } from '@modelcontextprotocol/server';
import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import type { McpSettings } from '../settings.ts';

/** Returns a failure as the result of a tool. The code is in the text for a model, and in `_meta` for a program. */
export function toToolError(error: unknown, log: McpSettings['log']): CallToolResult {
  const { code, message, retryable } = isShellfleetError(error) ? error : unexpected(error, log);
  return {
    isError: true,
    content: [{ type: 'text', text: `Error ${code}: ${message}` }],
    _meta: { 'shellfleet/error': { code, message, retryable } },
  };
}

/** Logs a bug. Its message may name paths and addresses of the server, so the client does not get it. */
function unexpected(error: unknown, log: McpSettings['log']): ShellfleetError {
  log(`A call failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return new ShellfleetError('INTERNAL', 'The server failed unexpectedly. Its log has the reason.');
}
