import { quoteWord } from '@shellfleet/protocol';
import type { Command, Option } from 'commander';

/**
 * One argument is a script. Several are words of one command; each is quoted, so that the shell passes it on unchanged.
 */
export function toScript(words: readonly string[]): string {
  return words.length === 1 ? (words[0] as string) : words.map(quoteWord).join(' ');
}

export function takesScript(verb: Command): boolean {
  return scriptPlace(verb) >= 0;
}

function scriptPlace(verb: Command): number {
  return verb.registeredArguments.findIndex((argument) => argument.name() === 'script');
}

/**
 * Options end at the first word of the script, as in `docker exec`: the words behind it are the script's. Returns the
 * arguments with a `--` there, unless the caller gave one.
 */
export function endOptionsAtScript(program: Command, args: readonly string[]): string[] {
  const { verb, verbAt } = findVerb(program, args);
  const before = verb === undefined ? -1 : scriptPlace(verb);
  if (verb === undefined || before < 0) return [...args];
  const options = [...program.options, ...verb.options];
  let at = verbAt;
  for (let operands = 0; operands <= before && at >= 0; operands += 1) at = nextOperand(args, at + 1, options);
  return at < 0 ? [...args] : [...args.slice(0, at), '--', ...args.slice(at)];
}

/** The first word that is neither an option nor the value of one. */
export function firstWord(args: readonly string[], options: readonly Option[]): string | undefined {
  return args[nextOperand(args, 0, options)];
}

/** The verb that is called, and the place of its name: `check` of `rules check`. */
function findVerb(program: Command, args: readonly string[]): { verb: Command | undefined; verbAt: number } {
  let [verb, verbAt]: [Command | undefined, number] = [program, -1];
  do {
    verbAt = nextOperand(args, verbAt + 1, verb === program ? program.options : [...program.options, ...verb.options]);
    verb = verb.commands.find((command) => command.name() === args[verbAt]);
  } while (verb !== undefined && verb.commands.length > 0);
  return { verb, verbAt };
}

/** The place of the next word that is neither an option nor its value; -1 when there is none before a `--`. */
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
  // Of letters behind one dash, the first that takes a value takes the rest of the word, or else the next word.
  const letters = [...word.slice(1)];
  const taker = letters.findIndex((letter) =>
    options.some(({ short, required }) => short === `-${letter}` && required),
  );
  return taker >= 0 && taker === letters.length - 1;
}
