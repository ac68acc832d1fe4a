import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';

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

describe('the end of a process', () => {
  test('waits until a slow reader has read all output', async () => {
    const program = start();
    const exit = once(program, 'exit');
    await once(program.stdout, 'readable'); // the program writes, and waits because nobody reads
    const output = await text(program.stdout);
    expect({ length: output.length, exit: await exit }).toEqual({ length: 4_000_000, exit: [3, null] });
  });

  test('does not wait for a reader that has gone', async () => {
    const program = start();
    const exit = once(program, 'exit');
    await once(program.stdout, 'readable');
    program.stdout.destroy();
    expect(await exit).toEqual([3, null]);
  });
});
