import {
  ensureShellfleetError,
  isOn,
  namespaceSchema,
  ShellfleetError,
  tenantIdSchema,
  toPrintable,
} from '@shellfleet/protocol';
import { Command, CommanderError, Option } from 'commander';
import type { Config } from '../config.ts';
import { checkedBy } from './checked-by.ts';
import { createVerbContext } from './context.ts';
import { EXIT_OWN_FAILURE, EXIT_USAGE, exitCodeOfError } from './exit-codes.ts';
import { addExamples, configureHelp, leafVerbs } from './help.ts';
import { endOptionsAtScript, firstOperand, takesScript } from './script-words.ts';
import { showWarnings } from './show-warnings.ts';
import { CliOutput } from './terminal.ts';
import { loadVerbs, type VerbGroups } from './verbs.ts';

/**
 * Runs a command line and returns its exit code. A result that cannot be written is a failure of Shellfleet (125).
 */
export async function runCli(args: readonly string[], config: Config): Promise<number> {
  const terminal = new CliOutput(config);
  showWarnings(terminal);
  const exitCode = await runVerb(args, config, terminal);
  return (await terminal.flush()) ? exitCode : EXIT_OWN_FAILURE;
}

/** Returns the first word that is no option of the program, or its value. */
export function verbOf(args: readonly string[]): string | undefined {
  return firstOperand(args, settings());
}

/** Runs a verb. Only this function turns an error into a line on stderr. */
async function runVerb(args: readonly string[], config: Config, terminal: CliOutput): Promise<number> {
  let exitCode = 0;
  const verbs = await loadVerbs(verbOf(args));
  const program = createProgram(config, terminal, verbs, (code) => {
    exitCode = code;
  });
  let flags: { json?: unknown } | undefined;
  program.hook('preAction', (_program, verb) => {
    flags = verb.opts();
  });
  const words = endOptionsAtScript(program, args);
  try {
    await program.parseAsync(words, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      if (isJson(words, undefined)) await terminal.json(toErrorLine(toUsageError(error)));
      return EXIT_USAGE;
    }
    terminal.fail(error);
    if (isJson(words, flags)) await terminal.json(toErrorLine(ensureShellfleetError(error)));
    return exitCodeOfError(error);
  }
}

/** Returns true if a program reads stdout. After a parse error there are no flags, so the words decide. */
function isJson(words: readonly string[], flags: { json?: unknown } | undefined): boolean {
  if (flags !== undefined) return flags.json === true;
  const end = words.indexOf('--');
  return words.slice(0, end < 0 ? undefined : end).includes('--json');
}

function toUsageError({ message }: CommanderError): ShellfleetError {
  return new ShellfleetError('COMMAND_INVALID', message.replace(/^error: /, ''));
}

function toErrorLine({ code, message, retryable }: ShellfleetError) {
  return { type: 'error', code, message, retryable };
}

/** Returns the options that may stand before the verb. */
function settings(): Option[] {
  return [
    new Option('--redis-url <url>', 'Redis of the fleet').env('SHELLFLEET_REDIS_URL'),
    new Option('--namespace <name>', 'namespace of the fleet')
      .env('SHELLFLEET_NAMESPACE')
      .argParser(checkedBy(namespaceSchema)),
    new Option('--tenant <name>', 'tenant of the sessions')
      .env('SHELLFLEET_TENANT')
      .argParser(checkedBy(tenantIdSchema)),
  ];
}

export function createProgram(
  config: Config,
  terminal: CliOutput,
  verbs: VerbGroups,
  setExitCode: (code: number) => void,
): Command {
  const program = new Command('shellfleet')
    .description('A fleet of hosts, used as one shell service.')
    .version(config.version)
    .configureOutput({ outputError: (text, write) => write(toUsageLine(text)) })
    .exitOverride();
  for (const setting of settings()) program.addOption(setting);
  configureHelp(program);
  const context = createVerbContext(program, config, terminal, setExitCode);
  for (const [group, registers] of verbs) {
    program.commandsGroup(group);
    for (const register of registers) register(program, context);
  }
  for (const verb of program.commands) inheritSettings(program, verb);
  for (const [, verb] of leafVerbs(program))
    if (takesScript(verb)) verb.configureOutput({ outputError: writeScriptUsage });
  ignoreSwitchesThatAreOff(program, config.env);
  addExamples(program);
  return program;
}

function inheritSettings(program: Command, verb: Command): void {
  verb.copyInheritedSettings(program);
  for (const inner of verb.commands) inheritSettings(verb, inner);
}

/** Ignores the environment variable of a switch if its value is empty, `0`, `false`, `no` or `off`. */
function ignoreSwitchesThatAreOff(command: Command, env: NodeJS.ProcessEnv): void {
  for (const option of command.options) {
    const value = option.envVar === undefined ? undefined : env[option.envVar];
    const isSwitch = !option.required && !option.optional;
    if (isSwitch && value !== undefined && !isOn(value)) delete option.envVar;
  }
  for (const inner of command.commands) ignoreSwitchesThatAreOff(inner, env);
}

/** Writes the usage. Adds a hint if an unknown option resembles no flag, because it may begin a script. */
function writeScriptUsage(text: string, write: (line: string) => void): void {
  const hint = ' Put `--` before a script that begins with a dash.';
  write(toUsageLine(text.replace(/(unknown option '[^']*')\s*$/, `$1.${hint}`)));
}

/** Returns commander's message in one line, with the next step. */
function toUsageLine(text: string): string {
  const words = text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ');
  return `shellfleet: ${toPrintable(words)}${/[.?)!]$/.test(words) ? '' : '.'} --help lists verbs and flags.\n`;
}
