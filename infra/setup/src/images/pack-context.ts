import { type ChildProcess, spawn } from 'node:child_process';
import { PassThrough, type Readable } from 'node:stream';

/** Returns a tar stream of files below a directory, owned by root. The stream fails when tar does. */
export function packDirectory(
  directory: string,
  paths: string[] = ['.'],
  exclude: string[] = [],
  flags: string[] = [],
): Readable {
  const excluded = exclude.map((pattern) => `--exclude=${pattern}`);
  // The files get root as owner, because their owner on this machine means nothing in the image. GNU tar and macOS tar
  // have different options for this.
  const owner =
    process.platform === 'darwin' ? ['--uid', '0', '--gid', '0'] : ['--owner=0', '--group=0', '--sort=name'];
  const child = spawn('tar', ['-C', directory, ...owner, ...flags, ...excluded, '-cf', '-', '--', ...paths], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return failingWith(child);
}

function failingWith(child: ChildProcess): Readable {
  const out = new PassThrough();
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  child.on('error', (error) => out.destroy(error));
  child.on('close', (exitCode) => {
    if (exitCode === 0) out.end();
    else out.destroy(new Error(`tar ended with exit code ${exitCode}: ${complaint.trim()}`));
  });
  child.stdout?.pipe(out, { end: false });
  return out;
}
