import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** A program and its arguments. */
export type Step = [file: string, ...args: string[]];

/** Runs one program with its output where ours goes; answers whether it ended well. */
export function runStep([file, ...args]: Step, cwd: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd, stdio: 'inherit' });
    child.on('error', (error) => {
      console.error(`${file}: ${error.message}`);
      resolve(false);
    });
    child.on('close', (exitCode) => resolve(exitCode === 0));
  });
}
