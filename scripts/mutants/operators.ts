import { type Language, maskCode } from './code-mask.ts';

/** Change of a file: the characters from `from` to `to` become `text`. */
export interface Edit {
  operator: string;
  from: number;
  to: number;
  text: string;
}

/** Returns every change that the language's operators can make to `source` outside of comments, types and strings. */
export function editsOf(source: string, language: Language): Edit[] {
  const mask = maskCode(source, language);
  return [
    ...TOKENS.filter(({ languages }) => languages.includes(language)).flatMap((rule) => replaceTokens(mask, rule)),
    ...numbers(mask),
    ...(language === 'shell' ? [] : [...negatedConditions(source, mask, language), ...swappedArguments(source, mask)]),
    ...droppedLines(mask, language),
    ...(language === 'lua' ? droppedFields(source, mask) : []),
    ...(language === 'shell' ? emptiedBranches(mask) : []),
  ];
}

interface TokenRule {
  operator: string;
  languages: readonly Language[];
  pattern: RegExp;
  to: Record<string, string>;
}

const BRACED = ['typescript', 'c'] as const;
const ALL = ['typescript', 'c', 'lua', 'shell'] as const;
const both = (a: string, b: string): Record<string, string> => ({ [a]: b, [b]: a });

const TOKENS: readonly TokenRule[] = [
  {
    operator: 'bound',
    languages: ['typescript', 'c', 'lua'],
    pattern: /(?<=\s)(?:<=|>=|<|>)(?=\s)/g,
    to: { ...both('<', '<='), ...both('>', '>=') },
  },
  { operator: 'equality', languages: ['typescript'], pattern: /[!=]==/g, to: both('===', '!==') },
  { operator: 'equality', languages: ['c'], pattern: /(?<=\s)[!=]=(?=\s)/g, to: both('==', '!=') },
  { operator: 'equality', languages: ['lua'], pattern: /[=~]=/g, to: both('==', '~=') },
  { operator: 'logic', languages: [...BRACED, 'shell'], pattern: /&&|\|\|/g, to: both('&&', '||') },
  { operator: 'logic', languages: ['lua'], pattern: /\b(?:and|or)\b/g, to: both('and', 'or') },
  { operator: 'logic', languages: ['typescript'], pattern: /\?\?(?!=)/g, to: { '??': '&&' } },
  { operator: 'negation', languages: BRACED, pattern: /(?<![\w)\]])!(?=[\w(#])/g, to: { '!': '' } },
  { operator: 'negation', languages: ['lua'], pattern: /\bnot /g, to: { 'not ': '' } },
  { operator: 'negation', languages: ['shell'], pattern: /(?<=^|\s)! /gm, to: { '! ': '' } },
  {
    operator: 'arithmetic',
    languages: ['typescript', 'c', 'lua'],
    pattern: /(?<=\s)[-+*/](?=\s)/g,
    to: { ...both('+', '-'), ...both('*', '/') },
  },
  { operator: 'arithmetic', languages: BRACED, pattern: /(?<=\s)[-+]=(?=\s)/g, to: both('+=', '-=') },
  { operator: 'bits', languages: BRACED, pattern: /(?<=\s)[&|](?=\s)/g, to: both('&', '|') },
  { operator: 'boolean', languages: ['typescript', 'lua'], pattern: /\b(?:true|false)\b/g, to: both('true', 'false') },
  {
    operator: 'choice',
    languages: ['typescript', 'lua'],
    pattern: /(?<=\b[Mm]ath\.)(?:min|max)\b/g,
    to: both('min', 'max'),
  },
  { operator: 'choice', languages: ['typescript'], pattern: /(?<=\.)(?:some|every)(?=\()/g, to: both('some', 'every') },
  { operator: 'jump', languages: ALL, pattern: /\bbreak\b|\bcontinue\b/g, to: both('break', 'continue') },
  {
    operator: 'test',
    languages: ['shell'],
    pattern: /(?<=\s)-(?:eq|ne|lt|le|gt|ge|z|n)(?=\s)/g,
    to: { ...both('-eq', '-ne'), ...both('-lt', '-le'), ...both('-gt', '-ge'), ...both('-z', '-n') },
  },
];

function replaceTokens(mask: string, { operator, pattern, to }: TokenRule): Edit[] {
  return [...mask.matchAll(pattern)].flatMap(({ 0: token, index }) => {
    const text = to[token];
    return text === undefined ? [] : [{ operator, from: index, to: index + token.length, text }];
  });
}

/** Changes small numbers to their neighbours. Halves large ones, because a neighbour seldom changes the behaviour. */
function numbers(mask: string): Edit[] {
  return [...mask.matchAll(/(?<![\w.$#])\d[\d_]*(?![\w.])/g)].flatMap(({ 0: digits, index }) => {
    const value = Number(digits.replaceAll('_', ''));
    const neighbours = value > 100 ? [Math.floor(value / 2)] : value > 0 ? [value + 1, value - 1] : [1];
    const place = { operator: 'number', from: index, to: index + digits.length };
    return neighbours.map((neighbour) => ({ ...place, text: String(neighbour) }));
  });
}

function negatedConditions(source: string, mask: string, language: Language): Edit[] {
  if (language === 'lua') {
    return [...mask.matchAll(/(?<=\bif )[^\n]*?(?= then\b)/g)].map(({ 0: condition, index }) => {
      const to = index + condition.length;
      return { operator: 'condition', from: index, to, text: `not (${source.slice(index, to)})` };
    });
  }
  return [...mask.matchAll(/\bif \(/g)].flatMap(({ 0: { length }, index }) => {
    const end = closingBracket(mask, index + length - 1);
    return end === undefined
      ? []
      : [{ operator: 'condition', from: index + length, to: end, text: `!(${source.slice(index + length, end)})` }];
  });
}

function swappedArguments(source: string, mask: string): Edit[] {
  return [...mask.matchAll(/(?<=\w\()([^(),;]+), ([^(),;]+)(?=\)(?!\s*(?:\{|=>)))/g)].flatMap(
    ({ 0: all, 1: first, 2: second, index }) => {
      if (first === second || mask.slice(0, index).match(/\bfunction [\w.:]*\($/)) return [];
      const text = `${source.slice(index + first!.length + 2, index + all.length)}, ${source.slice(index, index + first!.length)}`;
      return [{ operator: 'arguments', from: index, to: index + all.length, text }];
    },
  );
}

/** Statements alone on a line: a call, an assignment to an existing variable, an early return with its condition. */
const STATEMENTS: Record<Language, RegExp> = {
  typescript:
    /^(?:(?:await |void )?[\w.#![\]?]+(?:\(.*\)|\+\+| [-+*/|&?]*= .*)|(?:else )?if \(.*\) .*|(?:return|break|continue)\b.*);$/,
  c: /^(?:(?:\(void\))?\*?[\w.>[\]-]+(?:\(.*\)|\+\+|--| [-+*/|&]?= .*)|(?:else )?if \(.*\) .*|(?:break|continue));$/,
  lua: /^(?:(?!local\b|return\b)[\w.[\]#+ ]+(?:\(.*\)| = .*)|if .* then .* end)$/,
  shell: /^(?!(?:if|then|else|elif|fi|for|do|done|while|until|case|esac)\b)[\w$:\uE000][^;(){}]*$/,
};

function droppedLines(mask: string, language: Language): Edit[] {
  return linesOf(mask).flatMap(({ text, from }) => {
    const statement = text.trim();
    if (!STATEMENTS[language].test(statement) || !isBalanced(statement)) return [];
    if (language === 'shell' && /(?:\\|&&|\|\|?)$/.test(statement)) return [];
    const start = from + text.indexOf(statement);
    // The body of a condition or a loop on the line above must remain a statement.
    const nothing = { typescript: ';', c: ';', lua: '', shell: ':' }[language];
    return [{ operator: 'statement', from: start, to: start + statement.length, text: nothing }];
  });
}

/** Drops one field from `redis.call('HSET', key, field, value, …)`. */
function droppedFields(source: string, mask: string): Edit[] {
  return [...source.matchAll(/redis\.call\('(?:HSET|XADD)'/g)].flatMap(({ 0: { length }, index }) => {
    const open = index + 'redis.call'.length;
    const end = closingBracket(mask, open);
    if (end === undefined) return [];
    const commas = topLevelCommas(mask, index + length, end);
    const first = source.startsWith("redis.call('XADD'", index)
      ? commas.findIndex((comma) => source.slice(comma).match(/^,\s*'\*'/)) + 1
      : 1;
    const edits: Edit[] = [];
    for (let field = first; field > 0 && field + 1 < commas.length; field += 2) {
      // The last pair of a write stays, because Redis rejects a call without pairs.
      if (commas.length - first <= 2) break;
      edits.push({ operator: 'field', from: commas[field]!, to: commas[field + 2] ?? end, text: '' });
    }
    return edits;
  });
}

function emptiedBranches(mask: string): Edit[] {
  return [...mask.matchAll(/(?<=^[^()\n]*\) )[^();\n]+(?=;;)/gm)].map(({ 0: body, index }) => {
    return { operator: 'branch', from: index, to: index + body.length, text: '' };
  });
}

function topLevelCommas(mask: string, from: number, end: number): number[] {
  const commas: number[] = [];
  let depth = 0;
  for (let at = from; at < end; at += 1) {
    if ('([{'.includes(mask[at]!)) depth += 1;
    else if (')]}'.includes(mask[at]!)) depth -= 1;
    else if (mask[at] === ',' && depth === 0) commas.push(at);
  }
  return commas;
}

function closingBracket(mask: string, open: number): number | undefined {
  let depth = 0;
  for (let at = open; at < mask.length; at += 1) {
    if (mask[at] === '(') depth += 1;
    else if (mask[at] === ')' && --depth === 0) return at;
  }
  return undefined;
}

function isBalanced(text: string): boolean {
  const count = (characters: string): number => [...text].filter((character) => characters.includes(character)).length;
  return count('(') === count(')') && count('{') === count('}') && count('[') === count(']');
}

function linesOf(mask: string): { text: string; from: number }[] {
  let from = 0;
  return mask.split('\n').map((text) => {
    const line = { text, from };
    from += text.length + 1;
    return line;
  });
}
