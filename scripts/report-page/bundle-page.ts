import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from '../steps.ts';

/** The module of the client that has the script. */
export const PAGE_SCRIPT_PATH = join(root, 'libs/client/src/batch-report/page-script.ts');

/**
 * Returns the text of that module. The script is bundled ahead, because a report has it as text, and because neither
 * the packages nor a run from source have a bundler.
 */
export async function bundlePage(): Promise<string> {
  await using bundle = await rolldown({
    input: join(root, 'libs/client/page/main.ts'),
    platform: 'browser',
    onLog: (level, log) => {
      if (level === 'warn') throw new Error(`The page: ${log.message}`);
    },
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  const [{ code }, ...others] = output;
  if (others.length > 0) throw new Error('The script of the page must be one file.');
  // An end of a script element, or a begin of a comment, inside of the script would be taken for that by a browser.
  if (/<\/script|<!--/i.test(code))
    throw new Error('The script of the page has text that HTML would take for its own.');
  return `// Written by \`npm run report-page\` from libs/client/page.\nexport const PAGE_SCRIPT = ${JSON.stringify(code.trim())};\n`;
}
