import { type Command, Option } from 'commander';
import type { Context } from './context.ts';
import { ENDING_SIGNALS } from './ending-signals.ts';
import { addSessionFlags, type SessionFlags, toSpec } from './session-flags.ts';
import { parseDuration } from './units.ts';

/** Time in ms in which a call is answered. Clients give calls up after 60 s, and some after 45 s. */
const ANSWER_MS = 40_000;

interface McpFlags extends SessionFlags {
  session?: string;
  answerWithin: number;
}

export function registerMcp(program: Command, context: Context): void {
  const verb = program
    .command('mcp')
    .description('serve models over MCP, on stdin and stdout; docs/mcp.md has the lines for each client')
    .addOption(
      new Option('--session <name>', 'session of calls that name none; default: a new one').env(
        'SHELLFLEET_MCP_SESSION',
      ),
    )
    .addOption(
      new Option('--answer-within <time>', 'time until a call is answered, with the id of its command if it still runs')
        .argParser(parseDuration)
        .default(ANSWER_MS, '40s')
        .env('SHELLFLEET_MCP_ANSWER_WITHIN'),
    );
  addSessionFlags(verb, context.config.env).action((flags: McpFlags) => serve(program, context, flags));
}

async function serve(program: Command, { config, terminal }: Context, flags: McpFlags): Promise<void> {
  const { serveMcpOverStdio } = await import('@shellfleet/mcp');
  const ending = new AbortController();
  for (const signal of ENDING_SIGNALS) process.once(signal, () => ending.abort());
  const { redisUrl, namespace, tenant } = program.opts<{ redisUrl?: string; namespace?: string; tenant?: string }>();
  await serveMcpOverStdio(
    {
      version: config.version,
      spec: toSpec(flags) ?? {},
      session: flags.session,
      answerWithinMs: flags.answerWithin,
      log: (line) => terminal.say(line),
    },
    {
      apiKey: config.env.SHELLFLEET_API_KEY || undefined,
      connect: {
        ...(redisUrl ? { redisUrl } : {}),
        ...(namespace ? { namespace } : {}),
        ...(tenant ? { tenant } : {}),
      },
    },
    ending.signal,
  );
}
