import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';

const PROGRAM = `
import { exitWhenWritten } from ${JSON.stringify(new URL('./end-process.ts', import.meta.url).href)};
process.stdout.on('error', () => {});
process.stdout.write('x'.repeat(4_000_000));
await exitWhenWritten(3);
`;

function start() {
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', PROGRAM];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

test('a process ends when all it wrote has been read, however slow its reader is', async () => {
  const program = start();
  const exit = once(program, 'exit');
  await once(program.stdout, 'readable'); // it writes, and cannot go on
  const output = await text(program.stdout);
  expect({ length: output.length, exit: await exit }).toEqual({ length: 4_000_000, exit: [3, null] });
});

test('a process whose reader has gone ends all the same', async () => {
  const program = start();
  const exit = once(program, 'exit');
  await once(program.stdout, 'readable');
  program.stdout.destroy();
  expect(await exit).toEqual([3, null]);
});
