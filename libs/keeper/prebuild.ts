// Builds the published package's programs in the directory `prebuilt`, for both architectures with a cross compiler.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildInto, COMPILERS, hashOfSources } from './build.ts';
import { MissingBuildTool } from './src/missing-build-tool.ts';

const compilers: Record<string, string> = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc' };
const prebuilt = join(dirname(fileURLToPath(import.meta.url)), 'prebuilt');

for (const [name, cross] of Object.entries(compilers)) {
  const isOwn = name === arch();
  try {
    await prebuild(join(prebuilt, `linux-${name}`), isOwn ? [...COMPILERS, cross] : [cross]);
  } catch (error) {
    // A private build may lack the other architecture; a release must have both.
    if (!(error instanceof MissingBuildTool) || isOwn) throw error;
    await rm(join(prebuilt, `linux-${name}`), { recursive: true, force: true }); // a release looks for a directory
    console.error(`The keeper is not built for ${name}: ${cross} or its libsodium-dev:${name} is not installed.`);
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
  for (const header of ['shell_script.h', 'shell_builtin.h']) await rm(join(directory, header), { force: true });
  await writeFile(stamp, hash);
}
