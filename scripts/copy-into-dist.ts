// Copies files that a package's code reads at run time: node scripts/copy-into-dist.ts FROM PATTERN TO
import { copyFile, glob, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const [from = '', pattern = '', to = ''] = process.argv.slice(2);
const copied = new Set<string>();
for await (const path of glob(pattern, { cwd: from })) {
  await mkdir(dirname(join(to, path)), { recursive: true });
  await copyFile(join(from, path), join(to, path));
  copied.add(path);
}
if (copied.size === 0) throw new Error(`No file below ${from} matches ${pattern}.`);
// Removes files that an earlier build has copied.
for await (const path of glob(pattern, { cwd: to })) if (!copied.has(path)) await rm(join(to, path));
