import { toIssueText } from '@shellfleet/protocol';
import { isNode, LineCounter, parseDocument as parseYaml, type YAMLError } from 'yaml';
import type { z } from 'zod';

/**
 * Error of an operator's document that is not valid. The message names the file, the line, the field and what is
 * allowed.
 */
export class DocumentError extends Error {}

const MOST_PROBLEMS = 8;

/** Parses YAML, and so JSON too, by a schema. `name` is the name of the file, for messages. Throws DocumentError. */
export function parseDocument<T extends z.ZodType>(text: string, schema: T, name: string): z.output<T> {
  const lines = new LineCounter();
  const document = parseYaml(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const broken = [...document.errors, ...document.warnings];
  if (broken.length > 0) throw problemsOf(broken.map((error) => `${name}${lineOf(error, lines)}: ${error.message}`));
  let value: unknown;
  try {
    // Limits how often aliases may repeat a part of the document.
    value = document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch (error) {
    throw new DocumentError(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
  const parsed = schema.safeParse(value, { error: toIssueText });
  if (parsed.success) return parsed.data;
  throw problemsOf(
    parsed.error.issues.map((issue) => {
      const at = nearestNode(document, issue.path);
      const line = at === undefined ? '' : `, line ${lines.linePos(at).line}`;
      const field = toFieldName(issue.path);
      return `${name}${line}: ${field === '' ? '' : `${field} `}${describe(issue)}`;
    }),
  );
}

function problemsOf(problems: string[]): DocumentError {
  const more = problems.length - MOST_PROBLEMS;
  return new DocumentError(
    [...problems.slice(0, MOST_PROBLEMS), ...(more > 0 ? [`and ${more} more problems`] : [])].join('; '),
  );
}

function lineOf(error: YAMLError, lines: LineCounter): string {
  const { line } = lines.linePos(error.pos[0]);
  return line === 0 ? '' : `, line ${line}`;
}

/**
 * Returns the offset of the node at a path. If there is none, returns the offset of the nearest node that contains the
 * place.
 */
function nearestNode(document: ReturnType<typeof parseYaml>, path: readonly PropertyKey[]): number | undefined {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return undefined;
}

/** Writes a path as `rules[2].pattern`. */
function toFieldName(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`))
    .join('');
}

function describe(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'unrecognized_keys') return issue.message;
  const names = issue.keys.map((key) => `'${key}'`);
  const last = names.pop();
  const all = names.length === 0 ? `field ${last}` : `fields ${names.join(', ')} and ${last}`;
  return `${issue.message}; it has the unknown ${all}`;
}
