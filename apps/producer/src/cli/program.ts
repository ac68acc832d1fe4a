import { isOn } from '@shellfleet/protocol';
import { Command, CommanderError, Option } from 'commander';
import type { Config } from '../config.ts';
import { createContext } from './context.ts';
import { exitCodeOfError, USAGE } from './exit-codes.ts';
import { toPrintable } from './printable.ts';
import { Terminal } from './terminal.ts';
import { verbs } from './verbs.ts';

/** Runs one command line and returns its exit code. The only place where an error becomes a line on stderr. */
export async function runCli(args: readonly string[], config: Config): Promise<number> {
  const terminal = new Terminal(config);
  let exitCode = 0;
  const program = createProgram(config, terminal, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    terminal.fail(error);
    return exitCodeOfError(error);
  }
}

/** All verbs with their flags. */
export function createProgram(config: Config, terminal: Terminal, setExitCode: (code: number) => void): Command {
  const program = new Command('shellfleet')
    .description('A fleet of hosts, used as one shell service.')
    .version(config.version)
    .addOption(new Option('--redis-url <url>', 'Redis of the fleet').env('SHELLFLEET_REDIS_URL'))
    .addOption(new Option('--namespace <name>', 'namespace of the fleet').env('SHELLFLEET_NAMESPACE'))
    .addOption(new Option('--tenant <name>', 'tenant of the sessions').env('SHELLFLEET_TENANT'))
    .configureOutput({ outputError: (text, write) => write(toUsageLine(text)) })
    .exitOverride();
  const context = createContext(program, config, terminal, setExitCode);
  for (const register of verbs) register(program, context);
  for (const verb of program.commands) inheritSettings(program, verb, config.env);
  return program;
}

function inheritSettings(program: Command, verb: Command, env: NodeJS.ProcessEnv): void {
  verb.copyInheritedSettings(program);
  forgetSwitchedOff(verb, env);
  for (const inner of verb.commands) inheritSettings(verb, inner, env);
}

/** commander turns a switch on when its variable is set, whatever its value. */
function forgetSwitchedOff(verb: Command, env: NodeJS.ProcessEnv): void {
  for (const option of verb.options) {
    const isOff = option.envVar !== undefined && !isOn(env[option.envVar]);
    if (option.isBoolean() && isOff) option.env('');
  }
}

/** The message of commander in one line, with the next step. */
function toUsageLine(text: string): string {
  const words = text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ');
  return `shellfleet: ${toPrintable(words)}${/[.?)!]$/.test(words) ? '' : '.'} --help lists verbs and flags.\n`;
}
