import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** A program and its arguments. */
export type Step = [file: string, ...args: string[]];

/** Runs one program with the output of this process. Returns true if it succeeded. */
export function runStep([file, ...args]: Step, cwd: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd, stdio: 'inherit' });
    // SIGINT needs no forwarding, because a terminal sends Ctrl-C to the child as well.
    const passOn = (): void => void child.kill();
    process.once('SIGTERM', passOn);
    child.on('error', (error) => {
      console.error(`${file}: ${error.message}`);
      resolve(false);
    });
    child.on('close', (exitCode) => {
      process.off('SIGTERM', passOn);
      resolve(exitCode === 0);
    });
  });
}
