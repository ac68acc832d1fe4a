import type { OutputChunk } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 40 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/**
 * Silence of the command, longer than every deadline between a reader and a shell. The longest are 15 s at the
 * keeper's connection.
 */
const SILENT_SECONDS = 17;

const textOf = (chunks: OutputChunk[]) => chunks.map(({ text }) => text).join('');

describe('a command after lost contact', () => {
  // E2B#1074: after a while a running command cannot be found again.
  test('is found by its id from any process, with all output (E2B#1074)', async () => {
    const first = await stack.connect();
    const session = await first.session('e2b-1074');
    const script = 'for i in $(seq 1 5); do echo $i; done; until [ -e go ]; do sleep 0.02; done; seq 6 10; (exit 7)';
    const { id } = await session.submit(script);
    // The submitter ends, and the worker that began the command is killed.
    await until(
      () => session.info(),
      ({ state }) => state === 'busy',
    );
    await first.close();
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    const second = await (await stack.connect()).command(id);
    const chunks: OutputChunk[] = [];
    for await (const chunk of second.output()) {
      chunks.push(chunk);
      if (textOf(chunks) === '1\n2\n3\n4\n5\n') break;
    }
    await using inspect = inspectFleet(stack);
    const [container] = await inspect.containers('e2b-1074');
    const exec = await inspect.docker.getContainer(container?.id ?? '').exec({ Cmd: ['touch', '/workspace/go'] });
    await exec.start({});
    expect(await second.result()).toMatchObject({
      outcome: 'failure',
      exitCode: 7,
      stdout: '1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n',
    });
    // After the end, a third process resumes where the second stopped reading.
    const third = await (await stack.connect()).command(id);
    const rest = await Array.fromAsync(third.output({ after: chunks.at(-1)?.id as string }));
    expect(textOf(rest)).toBe('6\n7\n8\n9\n10\n');
  });

  // E2B#1074: the stream of a running command ends at a deadline, and the command cannot be found again.
  test('sends end and output to its readers after a long silence (E2B#1074)', async () => {
    const session = await (await stack.connect()).session('e2b-1074-silent');
    const { id } = await session.submit(`echo begun; sleep ${SILENT_SECONDS}; echo over; (exit 7)`, {
      timeoutMs: 60_000,
    });
    const [reader, waiting] = await Promise.all([stack.connect(), stack.connect()]);
    const streamed = Array.fromAsync((await reader.command(id)).output());
    expect(await (await waiting.command(id)).result()).toMatchObject({
      outcome: 'failure',
      exitCode: 7,
      stdout: 'begun\nover\n',
      shell: { state: 'kept' },
    });
    expect(textOf(await streamed)).toBe('begun\nover\n');
    const later = await (await stack.connect()).command(id);
    expect(textOf(await Array.fromAsync(later.output()))).toBe('begun\nover\n');
  });

  // E2B#1074: a process that finds a running command again can only read its output.
  test('takes stdin and its close from another process than the submitter (E2B#1074)', async () => {
    const first = await stack.connect();
    const session = await first.session('e2b-1074-stdin');
    const { id } = await session.submit('while read -r line; do echo "got $line"; done; echo over', {
      stdin: { open: true },
      timeoutMs: 60_000,
    });
    await until(
      () => session.info(),
      ({ state }) => state === 'busy',
    );
    await first.close();
    const second = await (await stack.connect()).command(id);
    await second.write('one\n');
    for await (const { text } of second.output()) {
      expect(text).toBe('got one\n');
      break;
    }
    await second.write('two\n');
    await second.closeStdin();
    expect(await second.result()).toMatchObject({ outcome: 'success', stdout: 'got one\ngot two\nover\n' });
  });

  // E2B#1128: a command of a sandbox that died hangs for ever.
  test('ends at once with the reason when its sandbox dies (E2B#1128)', async () => {
    const session = await stack.fleet.session('e2b-1128');
    const command = await session.submit('echo begun; sleep 4321', { timeoutMs: 600_000 });
    for await (const _chunk of command.output()) break;
    await using inspect = inspectFleet(stack);
    const [container] = await inspect.containers('e2b-1128');
    await inspect.docker.getContainer(container?.id ?? '').remove({ force: true });
    const from = performance.now();
    expect(await command.result()).toMatchObject({
      outcome: 'error',
      stdout: 'begun\n',
      error: { code: 'CONTAINER_LOST', message: expect.stringContaining('was removed') },
    });
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(await session.run('echo on')).toMatchObject({ stdout: 'on\n', shell: { state: 'lost', epoch: 2 } });
  });

  // E2B#1128: a caller cannot tell a lost host from a slow one.
  test('ends as lost with its host, and the session goes on elsewhere (E2B#1128)', async () => {
    await using two = await startFleet({ workers: 2 });
    const session = await two.fleet.session('unreachable', { hostGraceMs: 0 });
    const command = await session.submit('echo begun; sleep 4321', { timeoutMs: 600_000 });
    for await (const _chunk of command.output()) break;
    const { hostId } = await session.info();
    await two.workers.find((worker) => worker.hostId === hostId)?.kill();
    const from = performance.now();
    expect(await command.result()).toMatchObject({ outcome: 'lost', reason: 'host-lost' });
    expect(performance.now() - from).toBeLessThan(20_000);
    const next = await session.run('echo on');
    expect(next).toMatchObject({ stdout: 'on\n', shell: { state: 'lost', epoch: 2 } });
    expect(next.hostId).not.toBe(hostId);
  });
});
