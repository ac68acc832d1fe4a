import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const COMPILERS = ['cc', 'gcc', 'clang'];
const FLAGS = ['-std=gnu11', '-static', '-Os', '-Wall', '-Wextra'];
const run = promisify(execFile);

/** Compiles one file of C to a program that runs in every image. */
export async function buildStatic(source: string, program: string): Promise<void> {
  for (const compiler of COMPILERS) {
    const missing = await run(compiler, [...FLAGS, '-o', program, source]).then(
      () => false,
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        return true;
      },
    );
    if (!missing) return;
  }
  throw new Error(`No C compiler was found (tried ${COMPILERS.join(', ')}).`);
}
