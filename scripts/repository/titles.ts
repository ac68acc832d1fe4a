import type { Finding } from './comments.ts';
import { repositoryFiles } from './repository-files.ts';

// `node scripts/repository/titles.ts [PATH …]`: finds titles of tests that a reader of a report would not understand.

const MAX_WORDS = 15;

const call =
  /\b(?:test|it|describe)(?:\.(?:each|for|only|skip|skipIf|runIf|concurrent|sequential|fails|todo))*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\(\s*(['"`])((?:\\.|(?!\1)[^\\\n])*)\1/g;
/** Id of a behaviour. It means nothing in a report, and belongs in a comment. */
const id = /\bS[0-4]-\d{2}\b/;

/** Finds titles that are too long or have an id, and a file without a `describe`. */
export function findTitles(path: string, text: string): Finding[] {
  const at = (index: number): string => `${path}:${text.slice(0, index).split('\n').length}`;
  const findings = Array.from(text.matchAll(call), ({ index, 2: title = '' }): Finding[] => {
    const words = title.split(/\s+/).length;
    if (words > MAX_WORDS) return [{ at: at(index), problem: `${words} words, ${MAX_WORDS} at most: ${title}` }];
    return id.test(title) ? [{ at: at(index), problem: `holds an id: ${title}` }] : [];
  }).flat();
  const subject = /\bdescribe(?:\.\w+)*\(/.test(text) ? [] : [{ at: path, problem: 'no describe names the subject' }];
  return [...subject, ...findings];
}

/** Returns every finding in the test files of this checkout, or below the paths. */
export async function findInRepository(below: readonly string[] = []): Promise<Finding[]> {
  const files = await repositoryFiles(
    (path) => path.endsWith('.test.ts') && (below.length === 0 || below.some((place) => path.startsWith(place))),
  );
  return files.flatMap(({ path, text }) => findTitles(path, text));
}

if (import.meta.main) {
  const findings = await findInRepository(process.argv.slice(2));
  for (const { at, problem } of findings) console.log(`${at}: ${problem}`);
  console.log(`${findings.length} findings`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
