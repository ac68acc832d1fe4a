// Reads only the part of the shell language that bash, dash and busybox ash read alike: words, quotes, simple
// variables, separators, `!` and comments. A script is plain only if this reader and the parser find the same commands.

export interface Word {
  /** Text of the word without quotes, as far as it is known. */
  readonly text: string;
  /** False when the shell expands the word. The word may then become any number of words with any text. */
  readonly literal: boolean;
}
export type CommandWords = readonly Word[];

const BLANK = /(?:[ \t]|\\\n)+/y;
const COMMENT = /#[^\n]*/y;
const SEPARATOR = /&&|\|\||[;|\n]/y;
/** Matches most words, which then need not be read piece by piece. */
const BARE_WORD = /[A-Za-z0-9_./:=@%+,^-]+(?=[ \t\n;|&]|$)/y;
const BARE = /[A-Za-z0-9_./:=@%+,^\]}!-]+/y;
const HASH = /#/y;
const CONTINUATION = /\\\n/y;
const ESCAPED = /\\([ -~])/y;
const SINGLE_QUOTED = /'([^']*)'/y;
const DOUBLE_QUOTED = /"((?:[^"\\`$]|\\[\s\S]|\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}|[0-9?#@*]))*)"/y;
const VARIABLE = /\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}|[0-9?#@*])/y;
/**
 * Globs, braces and tildes, which the shell expands. Characters outside ASCII count too, because some locales treat
 * them as blanks.
 */
const EXPANDED = /[*?[{~]|\P{ASCII}+/uy;

/** Words that the shell does not read as a command's name, in at least one of the shells. */
const RESERVED = new Set(
  `! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until while`.split(' '),
);
/** Control characters, which confuse shells: bash marks quoted bytes with two of them. */
const CONTROL = /(?![\t\n])\p{Cc}|\p{Cs}/u;

/** Returns the commands of a plain script in their order. Returns undefined if the script is not plain. */
export function readPlainScript(script: string): CommandWords[] | undefined {
  const commands: CommandWords[] = [];
  let words: Word[] = [];
  let negated = false;
  let position = 0;
  const endCommand = (): boolean => {
    if (words.length === 0) return !negated;
    commands.push(words);
    words = [];
    negated = false;
    return true;
  };
  while (position < script.length) {
    const next = script[position] as string;
    const skipped = ' \t\\#'.includes(next)
      ? (match(BLANK, script, position) ?? match(COMMENT, script, position))
      : undefined;
    const separator = ';&|\n'.includes(next) ? match(SEPARATOR, script, position) : undefined;
    if (skipped) position += skipped[0].length;
    else if (separator) {
      if (!endCommand()) return undefined;
      position += separator[0].length;
    } else {
      const read = readWord(script, position);
      if (!read) return undefined;
      const raw = script.slice(position, read.end);
      position = read.end;
      if (words.length === 0 && raw === '!' && !negated) negated = true;
      else if (words.length === 0 && !canName(raw, read.word)) return undefined;
      else words.push(read.word);
    }
  }
  return endCommand() ? commands : undefined;
}

/** Reads one word from a position. Returns undefined if the word is not plain. */
export function readWord(source: string, start: number): { word: Word; end: number } | undefined {
  const bare = match(BARE_WORD, source, start);
  if (bare) return { word: { text: bare[0], literal: true }, end: start + bare[0].length };
  let text = '';
  let literal = true;
  let position = start;
  for (;;) {
    const piece = readPiece(source, position, position === start);
    if (!piece) break;
    text += piece.text;
    literal &&= piece.literal;
    position = piece.end;
  }
  if (position === start) return undefined;
  const next = source[position];
  if (next !== undefined && !' \t\n;|&'.includes(next)) return undefined;
  const raw = source.slice(start, position);
  if (raw === '[' || raw === '{}') literal = true;
  return { word: { text, literal: literal && !CONTROL.test(text) }, end: position };
}

interface Piece {
  text: string;
  literal: boolean;
  end: number;
}

function readPiece(source: string, position: number, first: boolean): Piece | undefined {
  const bare = match(BARE, source, position) ?? (first ? undefined : match(HASH, source, position));
  if (bare) return { text: bare[0], literal: true, end: position + bare[0].length };
  const single = match(SINGLE_QUOTED, source, position);
  if (single) return { text: single[1] as string, literal: true, end: position + single[0].length };
  const double = match(DOUBLE_QUOTED, source, position);
  if (double) {
    const text = (double[1] as string).replace(/\\(["$`\\]|\n)/g, (_, escaped) => (escaped === '\n' ? '' : escaped));
    const literal = !/(?<!\\)(?:\\\\)*\$/.test(double[1] as string);
    return { text, literal, end: position + double[0].length };
  }
  const continuation = match(CONTINUATION, source, position);
  if (continuation) return { text: '', literal: true, end: position + 2 };
  const escaped = match(ESCAPED, source, position);
  if (escaped) return { text: escaped[1] as string, literal: true, end: position + 2 };
  const expanded = match(VARIABLE, source, position) ?? match(EXPANDED, source, position);
  return expanded && { text: expanded[0], literal: false, end: position + expanded[0].length };
}

/** Tells whether a word can be the name of a command: it is no keyword and no assignment in any of the shells. */
function canName(raw: string, { text, literal }: Word): boolean {
  return literal && !RESERVED.has(raw.replaceAll('\\\n', '')) && !/^[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\+?=/s.test(text);
}

function match(pattern: RegExp, source: string, position: number): RegExpExecArray | undefined {
  pattern.lastIndex = position;
  return pattern.exec(source) ?? undefined;
}
