import { type Command, forEachChild, type ParsedScript, type Word as ParsedWord, parse, type SyntaxNode } from 'unbash';
import { type CommandWords, readPlainScript, readWord, type Word } from './plain-script.ts';

/** Longer scripts are not read, which bounds the time that rules take. */
const LONGEST_READABLE_CHARS = 64 * 1024;
const MOST_NODES = 100_000;

/**
 * - `plain`: exactly these commands run, in every shell. `document`: one command, which reads a here-document.
 * - `opaque`: more commands than these may run. `unreadable`: the parser reports an error.
 */
export interface Reading {
  readonly form: 'plain' | 'document' | 'opaque' | 'unreadable';
  readonly commands: readonly CommandWords[];
  /** Present when the script exceeds LONGEST_READABLE_CHARS or MOST_NODES. */
  readonly tooLong?: true;
}

/** Finds the commands that a script runs, and the form of the script. */
export function readScript(script: string): Reading {
  if (script.length > LONGEST_READABLE_CHARS) return TOO_LONG;
  if (script.includes('\0')) return { form: 'unreadable', commands: [] };
  const tree = parseWhole(script);
  const found = tree && findCommands(tree);
  if (!found) return TOO_LONG;
  if (found.broken) return { form: 'unreadable', commands: found.commands };
  const plain = found.compound ? undefined : readPlainScript(script);
  if (plain && agree(plain, found.commands)) return { form: 'plain', commands: plain };
  const document = found.documents === 1 ? readDocument(script, found.commands) : undefined;
  return document ? { form: 'document', commands: [document] } : { form: 'opaque', commands: found.commands };
}

const TOO_LONG: Reading = { form: 'unreadable', commands: [], tooLong: true };

function parseWhole(script: string): ParsedScript | undefined {
  try {
    return parse(script);
  } catch {
    return undefined; // The script is nested deeper than the stack of the parser.
  }
}

/** Node types of a plain script besides commands and words. */
const SIMPLE = new Set(
  [
    'Script',
    'Statement',
    'AndOr',
    'Pipeline',
    'Negation',
    'Command',
    'Word',
    'Literal',
    'Glob',
    'SingleQuoted',
    'DoubleQuoted',
  ].concat(['SimpleExpansion', 'ParameterExpansion', 'BraceExpansion']),
);

interface Found {
  commands: CommandWords[];
  /** Whether the script has more than plain commands. */
  compound: boolean;
  broken: boolean;
  documents: number;
}

/**
 * Returns every command in a tree, including those in substitutions, in source order. Returns undefined above
 * MOST_NODES.
 */
function findCommands(tree: ParsedScript): Found | undefined {
  const found: Found = { commands: [], compound: false, broken: false, documents: 0 };
  const left: SyntaxNode[] = [tree];
  for (let seen = 0; left.length > 0; seen += 1) {
    if (seen > MOST_NODES) return undefined;
    const node = left.pop() as SyntaxNode;
    if (!SIMPLE.has(node.type) || (node.type === 'Statement' && node.background)) found.compound = true;
    if (node.type === 'Script' && node.errors?.length) found.broken = true;
    if (node.type === 'HereDoc') found.documents += 1;
    if (node.type === 'Command') found.commands.push(wordsOf(node));
    const children: SyntaxNode[] = [];
    forEachChild(node, (child) => children.push(child));
    for (const child of children.reverse()) left.push(child);
  }
  return found;
}

function wordsOf({ name, suffix }: Command): CommandWords {
  const words: Word[] = [];
  for (const part of name ? [name, ...suffix] : suffix)
    if (part.type === 'Word') words.push(toWord(part));
    else if (part.type === 'Assignment')
      words.push({ text: readWord(part.text, 0)?.word.text ?? part.text, literal: false });
  return words;
}

function toWord(parsed: ParsedWord): Word {
  const read = readWord(parsed.text, 0);
  if (read && read.end === parsed.text.length && read.word.text === parsed.value) return read.word;
  return { text: parsed.value, literal: false };
}

function agree(plain: readonly CommandWords[], parsed: readonly CommandWords[]): boolean {
  return plain.length === parsed.length && plain.every((words, index) => sameWords(words, parsed[index] ?? []));
}

function sameWords(one: CommandWords, other: CommandWords): boolean {
  return (
    one.length === other.length &&
    one.every(
      (word, index) => word.literal === other[index]?.literal && (!word.literal || word.text === other[index].text),
    )
  );
}

/** Reads a script that consists of one plain command with a here-document, in which nothing is expanded. */
function readDocument(script: string, parsed: readonly CommandWords[]): CommandWords | undefined {
  const [line, ...rest] = script.split('\n');
  const begin = /^([^\\]*?)[ \t]*<<[ \t]*(['"])([A-Za-z_][A-Za-z0-9_]*)\2[ \t]*$/.exec(line as string);
  const commands = begin ? readPlainScript(begin[1] as string) : undefined;
  if (!begin || !commands || commands.length !== 1 || !agree(commands, parsed)) return undefined;
  const end = rest.indexOf(begin[3] as string);
  const endsThere = end >= 0 && rest.slice(end + 1).every((after) => after === '');
  return endsThere ? commands[0] : undefined;
}
