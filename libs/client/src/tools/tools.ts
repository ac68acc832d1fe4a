import type { ToolEvent, ToolInfo, ToolResult } from '@shellfleet/protocol';
import { callTool, type ToolCallOptions } from './call-tool.ts';
import { listTools, type ToolFilter } from './list-tools.ts';
import type { ToolCallContext } from './tool-context.ts';
import { watchTools } from './watch-tools.ts';

/** Functions that hosts offer. Each call runs in a separate process, outside the sessions. */
export class Tools {
  readonly #context: ToolCallContext;

  constructor(context: ToolCallContext) {
    this.#context = context;
  }

  /** Lists the tools that live hosts offer now, by name. Rejects with COMMAND_INVALID for an invalid filter. */
  list(filter: ToolFilter = {}): Promise<ToolInfo[]> {
    return listTools(this.#context, filter);
  }

  /**
   * Calls a tool with JSON arguments of at most 4 MiB. A call that fails returns a result with `ok: false`. Rejects
   * with COMMAND_INVALID or QUEUE_UNAVAILABLE, and with the reason of the signal, which cancels the call.
   *
   * ```ts
   * const result = await fleet.tools.call('word-count', { text: 'a b c' });
   * if (result.ok) console.log(result.output);
   * ```
   */
  call(name: string, args: unknown = {}, options: ToolCallOptions = {}): Promise<ToolResult> {
    return callTool(this.#context, name, args, options);
  }

  /**
   * Yields `tool.added` for every offered tool, then each change and call of this tenant. Rejects on abort or close.
   */
  watch(options: { signal?: AbortSignal | undefined } = {}): AsyncGenerator<ToolEvent> {
    return watchTools(this.#context, options.signal);
  }
}
