import { type AgentMiddleware, MIDDLEWARE_BRAND, type Runtime } from 'langchain';
import { type ShellToolMiddlewareOptions, toShellSpec } from './options/shell-tool-options.ts';
import { RunSessions } from './sessions/run-sessions.ts';
import { resourcesIn, shellStateSchema } from './sessions/shell-session-resources.ts';
import { createShellTool, type ShellTool } from './tool/shell-tool.ts';
import { describeShellTool, SHELL_TOOL_NAME } from './tool/tool-description.ts';

/**
 * Gives an agent a tool whose commands share one shell of a fleet. The session is opened before the agent, found again
 * when the run is resumed, and closed after the agent.
 *
 * ```ts
 * const agent = createAgent({ model, middleware: [new ShellToolMiddleware({ fleet })] });
 * ```
 */
export class ShellToolMiddleware
  implements AgentMiddleware<typeof shellStateSchema, undefined, unknown, readonly [ShellTool], readonly []>
{
  readonly [MIDDLEWARE_BRAND] = true as const;
  readonly name = 'ShellToolMiddleware';
  readonly stateSchema = shellStateSchema;
  readonly tools: readonly [ShellTool];
  readonly #sessions: RunSessions;
  readonly #keepOpen: boolean;

  constructor(options: ShellToolMiddlewareOptions) {
    const spec = toShellSpec(options);
    const {
      toolName = SHELL_TOOL_NAME,
      toolDescription = describeShellTool(spec.resolved),
      keepOpen = false,
    } = options;
    this.#sessions = new RunSessions(spec, toolName, options);
    this.#keepOpen = keepOpen;
    this.tools = [
      createShellTool({
        toolName,
        toolDescription,
        output: spec.resolved.output,
        open: async ({ state, configurable }) =>
          (resourcesIn(state) ?? (await this.#sessions.open(configurable))).session,
      }),
    ];
  }

  /** Opens the session before the agent starts. Rejects when a start-up command fails. */
  readonly beforeAgent = async (_state: unknown, { configurable }: Runtime) => ({
    _shell_session_resources: await this.#sessions.begin(configurable),
  });

  /** Runs the shutdown commands and closes the session after the agent, unless it is kept open. */
  readonly afterAgent = async (state: unknown, { configurable }: Runtime) => {
    if (!this.#keepOpen) await this.#sessions.end(resourcesIn(state), configurable);
  };
}

/** Returns a ShellToolMiddleware. LangChain.js makes its own middleware by functions of such names. */
export function shellToolMiddleware(options: ShellToolMiddlewareOptions): ShellToolMiddleware {
  return new ShellToolMiddleware(options);
}
