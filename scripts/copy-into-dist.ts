// Part of the build of a package whose code reads files beside itself: node scripts/copy-into-dist.ts FROM PATTERN TO
import { copyFile, glob, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const [from = '', pattern = '', to = ''] = process.argv.slice(2);
let copied = 0;
for await (const path of glob(pattern, { cwd: from })) {
  await mkdir(dirname(join(to, path)), { recursive: true });
  await copyFile(join(from, path), join(to, path));
  copied += 1;
}
if (copied === 0) throw new Error(`No file below ${from} matches ${pattern}.`);
