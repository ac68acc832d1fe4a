import { quoteWord } from '@shellfleet/protocol';
import type { Command, Option } from 'commander';

/** Returns the script: a single word is the script itself, and several words are quoted into one command. */
export function toScript(words: readonly string[]): string {
  return words.length === 1 ? (words[0] as string) : words.map(quoteWord).join(' ');
}

export function takesScript(verb: Command): boolean {
  return scriptPlace(verb) >= 0;
}

function scriptPlace(verb: Command): number {
  return verb.registeredArguments.findIndex((argument) => argument.name() === 'script');
}

/** Inserts `--` before the first word of the script, unless the caller gave one, so that options end there. */
export function endOptionsAtScript(program: Command, args: readonly string[]): string[] {
  const { verb, verbAt } = findVerb(program, args);
  const before = verb === undefined ? -1 : scriptPlace(verb);
  if (verb === undefined || before < 0) return [...args];
  const options = [...program.options, ...verb.options];
  let at = verbAt;
  for (let operands = 0; operands <= before && at >= 0; operands += 1) at = nextOperand(args, at + 1, options);
  return at < 0 ? [...args] : [...args.slice(0, at), '--', ...args.slice(at)];
}

/** Returns the first word that is no option and no option's value. */
export function firstOperand(args: readonly string[], options: readonly Option[]): string | undefined {
  return args[nextOperand(args, 0, options)];
}

/** Finds the verb and the index of its name, for example `check` of `rules check`. */
function findVerb(program: Command, args: readonly string[]): { verb: Command | undefined; verbAt: number } {
  let [verb, verbAt]: [Command | undefined, number] = [program, -1];
  do {
    verbAt = nextOperand(args, verbAt + 1, verb === program ? program.options : [...program.options, ...verb.options]);
    verb = verb.commands.find((command) => command.name() === args[verbAt]);
  } while (verb !== undefined && verb.commands.length > 0);
  return { verb, verbAt };
}

/** Returns the index of the next word that is no option and no value, or -1 if there is none before `--`. */
function nextOperand(args: readonly string[], from: number, options: readonly Option[]): number {
  for (let at = from; at < args.length; at += 1) {
    const word = args[at] as string;
    if (word === '--') return -1;
    if (!word.startsWith('-') || word === '-') return at;
    if (takesNextWord(word, options)) at += 1;
  }
  return -1;
}

function takesNextWord(word: string, options: readonly Option[]): boolean {
  if (word.startsWith('--')) return options.some(({ long, required }) => long === word && required);
  // The first letter that takes a value takes the rest of the word, or else the next word.
  const letters = [...word.slice(1)];
  const taker = letters.findIndex((letter) =>
    options.some(({ short, required }) => short === `-${letter}` && required),
  );
  return taker >= 0 && taker === letters.length - 1;
}
