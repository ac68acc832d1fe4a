import { repositoryFiles } from './repository-files.ts';

// `node scripts/repository/comments.ts [PATH …]`: finds docstrings that do not begin with a subject or verb, and lines
// that are too wide.

export const MAX_COLUMNS = 120;

/** A line that breaks a rule: `path:line`, and the problem. */
export type Finding = { at: string; problem: string };

const fragment = /^(?:Of|As in|It|They|By|Undefined)\b/;
const head = /^(?:`[^`]+`|[\w-]+): /;

/** Finds docstrings without a subject: in TypeScript blocks from `/**`, elsewhere comments at the margin. */
export function findFragments(path: string, text: string): Finding[] {
  return docstrings(path, text).flatMap(({ line, words }) => {
    if (fragment.test(words)) return [{ at: `${path}:${line}`, problem: `begins without a subject: ${words}` }];
    if (head.test(words) && !path.endsWith('.lua'))
      return [{ at: `${path}:${line}`, problem: `begins with a name and a colon: ${words}` }];
    return [];
  });
}

/** Finds lines wider than {@link MAX_COLUMNS}, except those with one unbroken word such as a URL. */
export function findWideLines(path: string, text: string): Finding[] {
  return text.split('\n').flatMap((line, index) => {
    if (line.length <= MAX_COLUMNS || !/^\s*(?:\/\/|\/?\*+|--|#)/.test(line)) return [];
    const words = line.trim().split(/\s+/);
    if (words.length <= 2) return [];
    return [{ at: `${path}:${index + 1}`, problem: `${line.length} columns, ${MAX_COLUMNS} at most` }];
  });
}

function docstrings(path: string, text: string): { line: number; words: string }[] {
  const lines = text.split('\n');
  if (path.endsWith('.ts'))
    return lines.flatMap((line, index) => {
      const [, onLine] = /^\s*\/\*\* ?(.*?)(?: ?\*\/)?$/.exec(line) ?? [];
      if (onLine === undefined) return [];
      return [{ line: index + 1, words: onLine === '' ? (lines[index + 1] ?? '').replace(/^\s*\* ?/, '') : onLine }];
    });
  return lines.flatMap((line, index) => {
    const [, words] = /^(?:\/\/|--|#) (.*)$/.exec(line) ?? [];
    return words === undefined || /^(?:\/\/|--|#)/.test(lines[index - 1] ?? '') ? [] : [{ line: index + 1, words }];
  });
}

/** Returns every finding in this checkout, or below the paths. */
export async function findInRepository(below: readonly string[] = []): Promise<Finding[]> {
  const files = await repositoryFiles(
    (path) =>
      /\.(?:ts|c|h|lua|sh)$/.test(path) && (below.length === 0 || below.some((place) => path.startsWith(place))),
  );
  return files.flatMap(({ path, text }) => [...findFragments(path, text), ...findWideLines(path, text)]);
}

if (import.meta.main) {
  const findings = await findInRepository(process.argv.slice(2));
  for (const { at, problem } of findings) console.log(`${at}: ${problem}`);
  console.log(`${findings.length} findings`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
