import type { ToolEvent, ToolInfo, ToolResult } from '@shellfleet/protocol';
import { callTool, type ToolCallOptions } from './call-tool.ts';
import { listTools, type ToolFilter } from './list-tools.ts';
import type { ToolCallContext } from './tool-context.ts';
import { watchTools } from './watch-tools.ts';

/** Functions that hosts offer. Each call runs in a process of its own on a host, beside the sessions. */
export class Tools {
  readonly #context: ToolCallContext;

  constructor(context: ToolCallContext) {
    this.#context = context;
  }

  /** The tools that live hosts offer now, by name. Rejects with COMMAND_INVALID for a filter that is not valid. */
  list(filter: ToolFilter = {}): Promise<ToolInfo[]> {
    return listTools(this.#context, filter);
  }

  /**
   * Calls a tool with JSON arguments of at most 4 MiB and returns its result. A call that fails is a result with `ok: false`. Rejects with
   * COMMAND_INVALID or QUEUE_UNAVAILABLE when the call was not accepted, and with the reason of the signal, which cancels the call.
   *
   * ```ts
   * const result = await fleet.tools.call('word-count', { text: 'a b c' });
   * if (result.ok) console.log(result.output);
   * ```
   */
  call(name: string, args: unknown = {}, options: ToolCallOptions = {}): Promise<ToolResult> {
    return callTool(this.#context, name, args, options);
  }

  /** Yields `tool.added` for every tool that is offered, then each change, and the calls of this tenant from now on. Rejects when the signal aborts or the fleet is closed. */
  watch(options: { signal?: AbortSignal | undefined } = {}): AsyncGenerator<ToolEvent> {
    return watchTools(this.#context, options.signal);
  }
}
