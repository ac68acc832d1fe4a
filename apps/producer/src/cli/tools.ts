import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { ShellfleetError, type ToolEvent, type ToolResult } from '@shellfleet/client';
import { tryJson } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { ENDING_SIGNALS } from './ending-signals.ts';
import { EXIT_CANCELLED, exitCodeOfToolError } from './exit-codes.ts';
import { sayWhyItWaits } from './tool-waiting.ts';
import { parseDuration } from './units.ts';

interface CallFlags {
  args?: string;
  timeout?: number;
  startDeadline?: number;
  callId?: string;
  json?: boolean;
}

export function registerTools(program: Command, context: Context): void {
  const tools = program.command('tools').description('functions that hosts offer');
  tools
    .command('ls')
    .description('list the tools that live hosts offer')
    .argument('[query]', 'only those that have this text in their name or description')
    .addOption(jsonFlag())
    .action((query: string | undefined, flags: { json?: boolean }) => list(context, query, flags.json === true));
  tools
    .command('call')
    .description('call a tool and print what it returns')
    .argument('<tool>')
    .addOption(
      new Option('--args <json>', 'arguments as JSON; @FILE or - (stdin) to read them; default: {}').env(
        'SHELLFLEET_TOOL_ARGS',
      ),
    )
    .addOption(
      new Option('--timeout <time>', 'time limit of the call: 30s, 5m')
        .argParser(parseDuration)
        .env('SHELLFLEET_TOOL_TIMEOUT'),
    )
    .addOption(
      new Option('--start-deadline <time>', 'time within which it must start')
        .argParser(parseDuration)
        .env('SHELLFLEET_TOOL_START_DEADLINE'),
    )
    .addOption(
      new Option('--call-id <id>', 'name of the call, which its result and events have').env('SHELLFLEET_TOOL_CALL_ID'),
    )
    .addOption(jsonFlag())
    .action((name: string, flags: CallFlags) => call(context, name, flags));
  tools
    .command('watch')
    .description('print the tools, then each change and each call, until Ctrl-C')
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => watch(context, flags.json === true));
}

async function list({ terminal, withFleet }: Context, query: string | undefined, json: boolean): Promise<void> {
  await withFleet(async (fleet) => {
    const tools = await fleet.tools.list({ query });
    if (json) {
      for (const tool of tools) await terminal.json(tool);
      return;
    }
    const rows = tools.map(({ name, hosts, differing, timeoutMs, description = '' }) => [
      name,
      hosts.map((host) => (differing.includes(host) ? `${host} (differs)` : host)).join(','),
      `${timeoutMs / 1_000} s`,
      description.split('\n')[0] ?? '',
    ]);
    await terminal.table([['TOOL', 'HOSTS', 'TIME LIMIT', 'DESCRIPTION'], ...rows]);
  });
}

/** Calls a tool, and prints text as it is and anything else as JSON. A signal cancels the call. */
async function call({ terminal, setExitCode, withFleet }: Context, name: string, flags: CallFlags): Promise<void> {
  const args = await readArguments(flags.args ?? '{}');
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  await withFleet(async (fleet) => {
    for (const signal of ENDING_SIGNALS) process.once(signal, interrupt);
    const { timeout, startDeadline, callId } = flags;
    const options = {
      signal: stop.signal,
      onWaiting: sayWhyItWaits(terminal, name, {
        startDeadlineMs: startDeadline,
        onHopeless: (reason) => stop.abort(reason),
      }),
      onApproval: () =>
        terminal.say(
          `The call of ${name} waits for an approval; \`shellfleet approvals watch\` shows why, and how to answer.`,
        ),
      ...(timeout === undefined ? {} : { timeoutMs: timeout }),
      ...(callId === undefined ? {} : { callId }),
      ...(startDeadline === undefined ? {} : { startDeadlineMs: startDeadline }),
    };
    const result = await fleet.tools.call(name, args, options).catch((error: unknown) => {
      if (!stop.signal.aborted || stop.signal.reason instanceof ShellfleetError) throw error;
    });
    for (const signal of ENDING_SIGNALS) process.off(signal, interrupt);
    if (result === undefined) {
      terminal.say(`The call of ${name} was cancelled.`);
      return setExitCode(EXIT_CANCELLED);
    }
    if (!result.ok) setExitCode(exitCodeOfToolError(result.error.code));
    if (flags.json) return terminal.json(result);
    return showResult(terminal, result);
  });
}

async function showResult(terminal: Context['terminal'], result: ToolResult): Promise<void> {
  if (!result.ok) {
    const { code, message } = result.error;
    const step = code === 'unknown-tool' ? '. `shellfleet tools ls` lists the tools that live hosts offer.' : '';
    return terminal.say(`${message}${step} (${code})`);
  }
  return typeof result.output === 'string' ? terminal.line(result.output) : terminal.json(result.output);
}

async function watch({ terminal, withFleet }: Context, json: boolean): Promise<void> {
  await withFleet(async (fleet) => {
    try {
      for await (const event of fleet.tools.watch({ signal: terminal.readerGone })) {
        if (json) await terminal.json(event);
        else await terminal.table([toRow(event)]);
      }
    } catch (error) {
      if (!terminal.readerGone.aborted) throw error;
    }
  });
}

function toRow(event: ToolEvent): string[] {
  switch (event.type) {
    case 'tool.added':
    case 'tool.changed':
      return [event.type, event.tool.name, event.tool.hosts.join(',')];
    case 'tool.removed':
      return [event.type, event.name];
    case 'call.started':
      return [event.type, event.name, event.hostId, event.callId];
    case 'call.ended':
      return [event.type, event.name, event.hostId ?? '-', event.callId, event.ok ? 'ok' : (event.code ?? 'failed')];
  }
}

async function readArguments(given: string): Promise<unknown> {
  const json = given === '-' ? await text(process.stdin) : given.startsWith('@') ? await read(given.slice(1)) : given;
  const args = tryJson(json);
  if (args !== undefined) return args;
  throw new ShellfleetError(
    'COMMAND_INVALID',
    'The arguments are not JSON. Give --args \'{"name": "value"}\', --args @FILE, or --args - for stdin.',
  );
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new ShellfleetError(
      'COMMAND_INVALID',
      `The arguments in ${path} cannot be read: ${(cause as Error).message}.`,
      {},
      { cause },
    );
  }
}
