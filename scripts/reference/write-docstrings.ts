import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import { root } from '../steps.ts';
import type { FieldTexts, TypeTexts } from './option-texts.ts';

export interface SourceFile {
  /** Path below the root of the repository. */
  path: string;
  text: string;
}

const WIDTH = 120;
const DOCSTRING_BEFORE = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/;

type Statement = ReturnType<typeof parseAst>['body'][number];

/** Returns every source file that declares a type with texts, with its docstrings written from them. */
export async function writeDocstrings(texts: ReadonlyMap<string, TypeTexts>): Promise<SourceFile[]> {
  const files: SourceFile[] = [];
  for await (const path of glob('libs/{protocol,client,mailbox}/src/**/*.ts', { cwd: root })) {
    const code = await readFile(join(root, path), 'utf8');
    if (namesIn(code).some((name) => texts.has(name))) files.push({ path, text: withDocstrings(code, texts) });
  }
  return files;
}

const namesIn = (code: string) => [...code.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name = '']) => name);

function withDocstrings(code: string, texts: ReadonlyMap<string, TypeTexts>): string {
  const docstrings = parseAst(code, { lang: 'ts' }).body.flatMap((statement) => docstringsOf(statement, texts));
  let text = code;
  // Begins at the end, so that the positions of earlier declarations stay valid.
  for (const { at, indent, lines } of docstrings.toReversed()) {
    const before = text.slice(0, at).replace(DOCSTRING_BEFORE, '');
    text = `${before}${toComment(lines, indent)}\n${indent}${text.slice(at)}`;
  }
  return text;
}

interface Docstring {
  /** Position of the declaration that it describes. */
  at: number;
  indent: string;
  lines: string[];
}

function docstringsOf(statement: Statement, texts: ReadonlyMap<string, TypeTexts>): Docstring[] {
  const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : undefined;
  if (declared?.type !== 'TSInterfaceDeclaration' && declared?.type !== 'TSTypeAliasDeclaration') return [];
  const own = texts.get(declared.id.name);
  if (own === undefined) return [];
  const head = own.text === undefined ? [] : [{ at: statement.start, indent: '', lines: own.text.split('\n') }];
  const members = declared.type === 'TSInterfaceDeclaration' ? declared.body.body : [];
  const fields = members.flatMap((member) => {
    const name = member.type === 'TSPropertySignature' && member.key.type === 'Identifier' ? member.key.name : '';
    const field = own.fields.get(name);
    return field === undefined ? [] : [{ at: member.start, indent: '  ', lines: toLines(field) }];
  });
  return [...head, ...fields];
}

function toLines({ text, default: otherwise, limit }: FieldTexts): string[] {
  return [
    ...text.split('\n'),
    ...(otherwise === undefined ? [] : [`@default ${otherwise}`]),
    ...(limit === undefined ? [] : [`@limit ${limit}`]),
  ];
}

function toComment(lines: readonly string[], indent: string): string {
  const [first = ''] = lines;
  const isShort = lines.length === 1 && indent.length + first.length + '/**  */'.length <= WIDTH;
  if (isShort) return `/** ${first} */`;
  const wrapped = lines.flatMap((line) => wrap(line, WIDTH - indent.length - ' * '.length));
  return ['/**', ...wrapped.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`].join('\n');
}

/** Breaks a line between words. Further lines of an item of a list are indented. */
function wrap(line: string, width: number): string[] {
  const hang = line.startsWith('- ') ? '  ' : '';
  const lines: string[] = [];
  let current = '';
  for (const word of line.split(' ')) {
    if (current !== '' && current.length + 1 + word.length > width) {
      lines.push(current);
      current = hang + word;
    } else current = current === '' ? word : `${current} ${word}`;
  }
  return [...lines, current];
}

/** Returns the module of the command line with the texts of its flags. `--help` loads it without the schemas. */
export function writeFlagTexts(texts: ReadonlyMap<string, TypeTexts>): SourceFile {
  const byName = [...texts].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const types = byName.flatMap(([name, { fields }]) => {
    const flags = [...fields].flatMap(([field, { flag }]) =>
      flag === undefined ? [] : [`    ${field}: ${quote(flag)},`],
    );
    return flags.length === 0 ? [] : [`  ${name}: {`, ...flags.toSorted(), '  },'];
  });
  const head = '/** Texts of flags, written by `npm run reference` from the schemas of the options that they set. */';
  return {
    path: 'apps/producer/src/cli/flag-texts.ts',
    text: [head, 'export const FLAG_TEXTS = {', ...types, '} as const;', ''].join('\n'),
  };
}

const quote = (text: string) => (text.includes("'") ? JSON.stringify(text) : `'${text}'`);
