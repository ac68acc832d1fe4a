import type { ToolEvent, ToolInfo, ToolResult } from '@shellfleet/protocol';
import { callTool, type ToolCallOptions } from './call-tool.ts';
import { listTools } from './list-tools.ts';
import type { ToolContext } from './tool-context.ts';
import { watchTools } from './watch-tools.ts';

/** Functions that hosts offer, each call in a process of its own. */
export class Tools {
  readonly #context: ToolContext;

  constructor(context: ToolContext) {
    this.#context = context;
  }

  /** What live hosts offer now, by name. */
  list(): Promise<ToolInfo[]> {
    return listTools(this.#context);
  }

  /**
   * Resolves once, whatever the tool does: a call that fails is data. Rejects with a ShellfleetError when the call was not accepted, and
   * with the signal's reason when that aborts; then the call is cancelled.
   */
  call(name: string, args: unknown = {}, options: ToolCallOptions = {}): Promise<ToolResult> {
    return callTool(this.#context, name, args, options);
  }

  /** First what is offered, as added; then what changes, and the calls of this tenant. Ends with the signal, or with the connection. */
  watch(options: { signal?: AbortSignal } = {}): AsyncGenerator<ToolEvent> {
    return watchTools(this.#context, options.signal);
  }
}
