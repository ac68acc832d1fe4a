import { isLogField } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

describe('the log of a worker', () => {
  // S1-53
  test('has neither scripts, stdin nor output, even at the level debug', async () => {
    await using stack = await startFleet();
    const session = await stack.fleet.session('logged', {
      env: { GIVEN: 'word-in-a-variable' },
      secrets: { TOKEN: 'word-in-a-secret' },
    });
    const command = await session.submit(
      'echo "word in the $GIVEN" word-in-a-script; cat; echo "$TOKEN"; sh -c "exit 3"',
      {
        stdin: 'word-in-stdin',
      },
    );
    expect(await command.result()).toMatchObject({
      outcome: 'failure',
      stdout: expect.stringContaining('word-in-stdin'),
    });
    await session.run('word-that-is-no-command');
    await session.run('echo word-before; sleep 4321', { timeoutMs: 300 });
    await session.files.write('/tmp/word-in-a-path', 'word-in-a-file');
    await session.close();
    const log = stack.workers[0]?.log ?? '';
    const lines = log.split('\n').filter((line) => line.startsWith('{'));
    const levels = new Set(lines.map((line) => JSON.parse(line).level));
    expect(levels).toContain('debug');
    expect(log).toContain(command.id.slice(-26));
    // LOG-1: no name occurs twice in a line, so readers of JSON lose nothing.
    expect(lines.filter((line) => JSON.stringify(JSON.parse(line)) !== line)).toEqual([]);
    const fields = new Set(lines.flatMap((line) => Object.keys(JSON.parse(line))));
    expect([...fields].filter((name) => !isLogField(name))).toEqual([]);
    const started = lines.findIndex((line) => line.includes('"worker.started"'));
    expect(lines.slice(started).filter((line) => !line.includes('"host.id":'))).toEqual([]);
    expect(log).not.toContain('word-');
  });

  test('is read from another machine, across a restart of the worker', async () => {
    await using stack = await startFleet();
    const cli = new FleetCli(stack);
    const [worker] = stack.workers;
    const shown = await cli.text(['logs', '--host', 'h1', '--tail', '2', '--json']);
    const last = shown.stdout.trimEnd().split('\n');
    expect(last).toHaveLength(2);
    expect(last.filter((line) => !worker?.log.includes(`${line}\n`))).toEqual([]);
    const following = cli.start(['logs', '--host', 'h1', '-f', '--since', '1h']);
    const untilSaid = (words: string, times = 1) =>
      until(
        () => `${following.output().stdout}${following.output().stderr}`,
        (text) => text.split(words).length > times,
      );
    await untilSaid('worker.started slots=10');
    await worker?.kill();
    await untilSaid('h1 does not reply');
    await worker?.start();
    await untilSaid('another worker process');
    await untilSaid('worker.started slots=10', 2);
    following.child.kill('SIGKILL');
    expect(await cli.text(['logs', '--host', 'h2'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('This fleet has no host "h2"'),
    });
    expect(await cli.text(['logs', '--host', 'h1', '--since', 'tomorrow'])).toMatchObject({ exitCode: 2 });
    expect(await cli.text(['logs', 'a-session', '--host', 'h1'])).toMatchObject({ exitCode: 2 });
  });
});
