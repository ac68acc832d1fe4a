import type { Command, Option } from 'commander';

/** Candidates for the last word. */
export interface Completion {
  candidates: Candidate[];
  /** Kind of names from the fleet or the local disk. Without candidates, a shell completes local files itself. */
  wants?: 'session' | 'session-path' | 'command' | 'host' | 'tool' | 'key' | undefined;
  /** Prefix of the wanted names. */
  prefix: string;
}

export interface Candidate {
  value: string;
  description: string;
}

const WANTS: Record<string, Completion['wants']> = {
  session: 'session',
  'command|session': 'session',
  command: 'command',
  host: 'host',
  tool: 'tool',
  key: 'key',
  from: 'session-path',
  to: 'session-path',
};

/** Returns candidates for the last of `words`, at the cursor, which may be empty. The program is not in `words`. */
export function completeWords(program: Command, words: readonly string[]): Completion {
  const typed = words.at(-1) ?? '';
  const place = walk(program, words.slice(0, -1));
  const { verb, operands, ended, option } = place;
  // Bash treats `=` as a separate word.
  if (option !== undefined) return ofValue(option, typed === '=' ? '' : typed, '');
  if (!ended && typed.startsWith('-')) return ofOptions(program, verb, typed);
  const argument = verb.registeredArguments[Math.min(operands, lastArgument(verb))];
  if (verb.commands.length > 0) return among(visible(verb.commands), typed);
  if (argument === undefined || typed === ':' || words.at(-2) === ':') return nothing;
  if (argument.argChoices !== undefined) return among(argument.argChoices.map(toWord), typed);
  return { candidates: [], wants: WANTS[argument.name()], prefix: typed };
}

const nothing: Completion = { candidates: [], prefix: '' };

interface Place {
  verb: Command;
  /** number of arguments of the verb so far */
  operands: number;
  /** True in the words of a script, where options have ended. */
  ended: boolean;
  /** Option whose value is being typed. */
  option: Option | undefined;
}

function walk(program: Command, words: readonly string[]): Place {
  const place: Place = { verb: program, operands: 0, ended: false, option: undefined };
  for (const [index, word] of words.entries()) {
    if (place.option !== undefined) {
      if (word !== '=') place.option = undefined;
    } else if (place.ended) place.operands += 1;
    else if (word === '--') place.ended = true;
    else if (word === ':' || words[index - 1] === ':') continue;
    else if (word.startsWith('-') && word !== '-') place.option = takesNextWord(program, place.verb, word);
    else enter(place, word);
  }
  return place;
}

function enter(place: Place, word: string): void {
  const inner = place.verb.commands.find((verb) => verb.name() === word);
  if (inner !== undefined) {
    place.verb = inner;
    return;
  }
  place.operands += 1;
  const script = place.verb.registeredArguments.findIndex((argument) => argument.name() === 'script');
  place.ended = script >= 0 && place.operands > script;
}

function takesNextWord(program: Command, verb: Command, word: string): Option | undefined {
  return optionsOf(program, verb).find(({ long, short, required }) => required && (long === word || short === word));
}

function ofOptions(program: Command, verb: Command, typed: string): Completion {
  const [name = '', ...value] = typed.split('=');
  const option = optionsOf(program, verb).find(({ long }) => long === name);
  if (value.length > 0) return option === undefined ? nothing : ofValue(option, value.join('='), `${name}=`);
  const candidates = optionsOf(program, verb).map(({ long, description }) => ({ value: long ?? '', description }));
  return among([...candidates, { value: '--help', description: 'show the help' }], typed);
}

function ofValue({ argChoices = [] }: Option, typed: string, before: string): Completion {
  const { candidates } = among(argChoices.map(toWord), typed);
  return {
    candidates: candidates.map(({ value, description }) => ({ value: before + value, description })),
    prefix: typed,
  };
}

const optionsOf = (program: Command, verb: Command) =>
  [...new Set([...verb.options, ...program.options])].filter(({ hidden, long }) => !hidden && long !== undefined);

const lastArgument = ({ registeredArguments }: Command) =>
  registeredArguments.at(-1)?.variadic === true ? registeredArguments.length - 1 : Number.POSITIVE_INFINITY;

const among = (candidates: Candidate[], prefix: string): Completion => ({
  candidates: candidates.filter(({ value }) => value.startsWith(prefix)),
  prefix,
});

const visible = (verbs: readonly Command[]): Candidate[] =>
  verbs
    .map((verb) => ({ value: verb.name(), description: verb.description() }))
    .filter(({ value }) => !value.startsWith('__'));

const toWord = (value: string) => ({ value, description: '' });
