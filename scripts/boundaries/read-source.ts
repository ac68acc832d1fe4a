/** One module, as the rules look at it: where it is, what it imports, and its code without comments and texts. */
export type SourceFile = { path: string; imports: string[]; code: string };

const importPatterns = [
  /\b(?:import|export)\b[^;'"`]*?\bfrom\s*(['"])([^'"\n]+)\1/g,
  /\bimport\s*(['"])([^'"\n]+)\1/g,
  /\b(?:import|require)\s*\(\s*(['"])([^'"\n]+)\1/g,
];

export function readSource(path: string, text: string): SourceFile {
  const withoutComments = blank(text, { strings: false });
  const imports = new Set<string>();
  for (const pattern of importPatterns) {
    for (const match of withoutComments.matchAll(pattern)) imports.add(match[2]!);
  }
  return { path, imports: [...imports], code: blank(text, { strings: true }) };
}

/**
 * Blanks comments, and texts when asked. TypeScript 7 has no parser to call from a program; this scanner takes a quote
 * in a regular expression for a text, which then ends at the end of the line.
 */
function blank(text: string, { strings }: { strings: boolean }): string {
  let out = '';
  for (let at = 0; at < text.length; ) {
    const end = endOfToken(text, at);
    const isComment = text.startsWith('//', at) || text.startsWith('/*', at);
    const token = text.slice(at, end);
    const hide = isComment || (end - at > 1 && (strings || token.startsWith('`')));
    out += hide ? token.replace(/[^\n]/g, ' ') : token;
    at = end;
  }
  return out;
}

function endOfToken(text: string, at: number): number {
  if (text.startsWith('//', at)) return indexOrEnd(text, text.indexOf('\n', at));
  if (text.startsWith('/*', at)) return indexOrEnd(text, text.indexOf('*/', at + 2), 2);
  const quote = text[at];
  if (quote !== "'" && quote !== '"' && quote !== '`') return at + 1;
  for (let end = at + 1; end < text.length; end += 1) {
    if (text[end] === '\\') end += 1;
    else if (text[end] === quote) return end + 1;
    else if (text[end] === '\n' && quote !== '`') return end;
  }
  return text.length;
}

function indexOrEnd(text: string, index: number, length = 0): number {
  return index === -1 ? text.length : index + length;
}
