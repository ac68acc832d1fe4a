// Builds the published package's programs in the directory `prebuilt`, for both architectures with a cross compiler.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildInto, hashOfSources, MissingCompiler } from './build.ts';

const compilers: Record<string, string[]> = {
  x64: ['x86_64-linux-musl-gcc', 'x86_64-linux-gnu-gcc'],
  arm64: ['aarch64-linux-musl-gcc', 'aarch64-linux-gnu-gcc'],
};
const prebuilt = join(dirname(fileURLToPath(import.meta.url)), 'prebuilt');

for (const [name, cross] of Object.entries(compilers)) {
  const isOwn = name === arch();
  try {
    await prebuild(join(prebuilt, `linux-${name}`), isOwn ? ['musl-gcc', 'cc', 'gcc', 'clang', ...cross] : cross);
  } catch (error) {
    // A private build may lack the other architecture; a release must have both.
    if (!(error instanceof MissingCompiler) || isOwn) throw error;
    console.error(`The keeper is not built for ${name}: none of ${cross.join(', ')} is installed.`);
  }
}

/** Builds one directory, unless it is a build of the same source. */
async function prebuild(directory: string, candidates: readonly string[]): Promise<void> {
  const stamp = `${directory}.source`;
  const hash = await hashOfSources();
  if ((await readFile(stamp, 'utf8').catch(() => undefined)) === hash) return;
  await rm(directory, { recursive: true, force: true });
  await rm(stamp, { force: true });
  await buildInto(directory, candidates);
  await rm(join(directory, 'shell_script.h'), { force: true });
  await writeFile(stamp, hash);
}
