import type { Command, Option } from 'commander';
import { describeDefaults } from './default-values.ts';
import { EXAMPLES } from './examples.ts';

/** Configures the help. Must be called before the verbs are registered, because they inherit the settings. */
export function configureHelp(program: Command): void {
  program.configureHelp({
    optionDescription: (option) => describeOption(option),
    subcommandTerm: (verb) => [verb.name(), ...verb.registeredArguments.map(toUsage)].join(' '),
  });
}

/** Adds the examples of the registered verbs. */
export function addExamples(program: Command): void {
  for (const [path, verb] of leafVerbs(program)) {
    const examples = EXAMPLES[path];
    if (examples === undefined) continue;
    const lines = examples.map((line) => `  ${line}`).join('\n');
    verb.addHelpText('after', `\nExamples:\n${lines}`);
    if (path === 'exec' || path === 'run') verb.addHelpText('after', () => `\n${describeDefaults()}`);
  }
}

/** Returns the verbs without subverbs, by their words: `hosts ls`, not `hosts`. */
export function leafVerbs(command: Command, path: readonly string[] = []): [string, Command][] {
  return command.commands
    .filter((verb) => verb.name() !== 'help')
    .flatMap((verb): [string, Command][] => {
      const own = [...path, verb.name()];
      return verb.commands.length > 0 ? leafVerbs(verb, own) : [[own.join(' '), verb]];
    });
}

function describeOption({ description, argChoices, defaultValueDescription, defaultValue, envVar }: Option): string {
  const preset = defaultValueDescription ?? (defaultValue === undefined ? undefined : String(defaultValue));
  const notes = [
    ...(argChoices === undefined ? [] : [argChoices.join(', ')]),
    ...(preset === undefined ? [] : [`default ${preset}`]),
  ];
  const text = notes.length === 0 ? description : `${description} (${notes.join('; ')})`;
  return envVar === undefined ? text : `${text} [${envVar}]`;
}

function toUsage(argument: { name(): string; required: boolean; variadic: boolean }): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}
