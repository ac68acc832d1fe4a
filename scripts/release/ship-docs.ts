import { copyFile, glob, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { root } from '../steps.ts';

/** Pages about tests of this repository and about decisions, which users of a package do not need. */
const LEFT_OUT = /^(adr\/|behaviours|mutants|benchmarks|reliability)/;

/** Schema for editors of the fleet's configuration. */
const CONFIGURATION_SCHEMA = 'reference/fleet-configuration.schema.json';

/** Puts the pages for users into a package. Links to other pages become plain text. */
export async function shipDocs(to: string): Promise<void> {
  const from = join(root, 'docs');
  const pages: string[] = [];
  for await (const page of glob('**/*.md', { cwd: from })) if (!LEFT_OUT.test(page)) pages.push(page);
  const shipped = new Set([...pages, CONFIGURATION_SCHEMA].map((page) => join(from, page)));
  for (const page of pages) {
    const text = await readFile(join(from, page), 'utf8');
    await mkdir(dirname(join(to, page)), { recursive: true });
    await writeFile(
      join(to, page),
      withoutDeadLinks(text, (target) => shipped.has(resolve(from, dirname(page), target))),
    );
  }
  await copyFile(join(from, CONFIGURATION_SCHEMA), join(to, CONFIGURATION_SCHEMA));
}

/** Removes links to pages for which `hasPage` is false. Links to other sites and within the page stay. */
export function withoutDeadLinks(markdown: string, hasPage: (target: string) => boolean): string {
  return markdown.replace(/\[((?:[^\][]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g, (link, text: string, target: string) => {
    const [path = ''] = target.split('#');
    return /^[a-z]+:/.test(target) || path === '' || hasPage(path) ? link : text;
  });
}
