import { stripTypeScriptTypes } from 'node:module';

export type Language = 'typescript' | 'c' | 'lua' | 'shell';

/** Placeholder for each character of a string in a mask. No operator matches it. */
const IN_STRING = '\uE000';

/**
 * Returns `source` with the same length and the same lines, in which comments, types and preprocessor lines are spaces
 * and the contents of strings are placeholders. The remaining characters are code, at unchanged offsets.
 */
export function maskCode(source: string, language: Language): string {
  return maskLiterals(language === 'typescript' ? withoutTypes(source) : source, language);
}

/** Replaces types by spaces. Throws if the source is not valid TypeScript. */
export function withoutTypes(source: string): string {
  const stripped = stripTypeScriptTypes(source, { mode: 'strip' });
  // If the lengths differ, the offsets would not agree, so the types stay.
  return stripped.length === source.length ? stripped : source;
}

const COMMENTS: Record<Language, RegExp> = {
  typescript: /\/\/[^\n]*|\/\*[\s\S]*?\*\//y,
  // A preprocessor line is not a statement that can be changed alone.
  c: /\/\/[^\n]*|\/\*[\s\S]*?\*\/|(?<=^|\n)#[^\n]*/y,
  lua: /--[^\n]*/y,
  shell: /(?<=^|[\s;])#[^\n]*/y,
};

const STRINGS: Record<Language, RegExp> = {
  typescript: /'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*"/y,
  c: /'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*"/y,
  lua: /'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*"/y,
  shell: /\\[\s\S]|'[^']*'|"(?:\\[\s\S]|[^"\\])*"/y,
};

const REGULAR_EXPRESSION =
  /(?<=[(,=:[!&|?{};\n]\s*|\breturn )\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/\w*/y;

function maskLiterals(source: string, language: Language): string {
  const mask: string[] = [];
  let at = 0;
  const take = (end: number, filler: string): void => {
    mask.push(source.slice(at, end).replaceAll(/[^\n]/g, filler));
    at = end;
  };
  while (at < source.length) {
    const comment = endOf(COMMENTS[language], source, at);
    const literal = endOf(STRINGS[language], source, at) ?? endOfTypeScriptLiteral(source, at, language);
    if (comment !== undefined) take(comment, ' ');
    else if (literal !== undefined) take(literal, IN_STRING);
    else {
      mask.push(source[at]!);
      at += 1;
    }
  }
  return mask.join('');
}

function endOf(pattern: RegExp, source: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(source) ? pattern.lastIndex : undefined;
}

function endOfTypeScriptLiteral(source: string, at: number, language: Language): number | undefined {
  if (language !== 'typescript') return undefined;
  return source[at] === '`' ? endOfTemplate(source, at) : endOf(REGULAR_EXPRESSION, source, at);
}

/** Returns the end of the template literal that begins at `from`, including templates within its expressions. */
function endOfTemplate(source: string, from: number): number {
  let at = from + 1;
  let depth = 0;
  for (; at < source.length; at += 1) {
    if (source[at] === '\\') at += 1;
    else if (depth === 0 && source[at] === '`') return at + 1;
    else if (depth > 0 && source[at] === '`') at = endOfTemplate(source, at) - 1;
    else if (source.startsWith('${', at)) depth += 1;
    else if (depth > 0 && source[at] === '}') depth -= 1;
  }
  return at;
}
