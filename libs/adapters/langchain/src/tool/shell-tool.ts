import { createHash } from 'node:crypto';
import { ToolMessage } from '@langchain/core/messages';
import { type DynamicStructuredTool, type ToolRuntime, tool } from '@langchain/core/tools';
import type { ModelTextOptions, Session } from '@shellfleet/client';
import { runShellCall, type ShellAnswer } from './run-shell-call.ts';
import { type ShellInput, shellInputSchema } from './shell-input.ts';
import { SHELL_TOOL_DESCRIPTION, SHELL_TOOL_NAME } from './tool-description.ts';

/** How a tool presents itself to the model. */
export interface ShellToolOptions {
  /**
   * Name of the tool.
   * @default 'shell'
   */
  toolName?: string | undefined;
  /**
   * Description of the tool.
   * @default the rules of a persistent shell
   */
  toolDescription?: string | undefined;
}

/** A tool of LangChain that takes a command or a restart. */
export type ShellTool = DynamicStructuredTool<typeof shellInputSchema, ShellInput, ShellInput, ToolMessage | string>;

/**
 * Returns a tool that runs its commands in the session, which stays the caller's to close. The commands of one turn run
 * one after the other.
 */
export function shellTool(session: Session, options: ShellToolOptions = {}): ShellTool {
  return createShellTool({ ...options, open: () => Promise.resolve(session) });
}

interface ShellToolSettings extends ShellToolOptions {
  /** Returns the session of a call. */
  open(runtime: ToolRuntime): Promise<Session>;
  /** Bounds of the output, for the notes on truncation. */
  output?: ModelTextOptions['output'];
}

/** Creates the tool with sessions that depend on the call. */
export function createShellTool(settings: ShellToolSettings): ShellTool {
  const { toolName = SHELL_TOOL_NAME, toolDescription = SHELL_TOOL_DESCRIPTION, open, output } = settings;
  return tool(
    async (input: ShellInput, runtime: ToolRuntime) => {
      const toolCallId = runtime.toolCall?.id ?? runtime.toolCallId;
      const answer = await runShellCall(input, () => open(runtime), {
        idempotencyKey: keyOf(runtime, toolCallId),
        signal: runtime.signal,
        output,
      });
      return toReply(answer, toolName, toolCallId);
    },
    { name: toolName, description: toolDescription, schema: shellInputSchema },
  );
}

/** Returns a message for a call with an id, and its text for a call without one, which is made by hand. */
function toReply({ text, status, artifact }: ShellAnswer, name: string, id: string | undefined): ToolMessage | string {
  if (id === undefined) return text;
  return new ToolMessage({ content: text, tool_call_id: id, name, status, artifact });
}

/**
 * Returns the same key when LangGraph repeats a call because its process ended or a retry is set: the step of the graph
 * has the same id then. Ids of tool calls alone are unique for few models.
 */
function keyOf({ configurable }: ToolRuntime, toolCallId: string | undefined): string | undefined {
  const step: unknown = configurable?.checkpoint_ns;
  if (typeof step !== 'string' || step === '' || toolCallId === undefined) return undefined;
  return createHash('sha256')
    .update(JSON.stringify([step, toolCallId]))
    .digest('hex');
}
