import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingInRedis } from '../support/everything-in-redis.ts';
import { expectedResult } from '../support/expected-result.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { everyFormOf, everythingBelow, findForms, PLANTED } from '../support/planted-secret.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Invariant 6: no secret that a rule knows reaches Redis, a log, argv, a label or a reader in clear.

const SPEC = { secrets: { TOKEN: PLANTED } };

/** Ways to print $TOKEN. `slowly` writes single bytes, so that chunks are cut everywhere. */
const WAYS: Record<string, string> = {
  raw: 'printf %s "$TOKEN"',
  'in the middle of a line': 'echo "a $TOKEN b"',
  'base64 at 0': 'printf %s "$TOKEN" | base64 -w0',
  'base64 at 1': 'printf "1%s" "$TOKEN" | base64 -w0',
  'base64 at 2': 'printf "12%s34" "$TOKEN" | base64 -w0',
  base64url: `python3 -c 'import base64,os; print(base64.urlsafe_b64encode(os.environb[b"TOKEN"]).decode())'`,
  hex: 'printf %s "$TOKEN" | od -An -v -tx1 | tr -d " \\n"',
  HEX: `python3 -c 'import os; print(os.environb[b"TOKEN"].hex().upper())'`,
  url: `python3 -c 'import os,urllib.parse; print(urllib.parse.quote(os.environ["TOKEN"], safe=""))'`,
  json: `python3 -c 'import os,json; print(json.dumps({"t": os.environ["TOKEN"]}, ensure_ascii=False))'`,
  'json in ascii': `python3 -c 'import os,json; print(json.dumps({"t": os.environ["TOKEN"]}))'`,
  slowly: `python3 -c 'import os,sys,time\nfor b in os.environb[b"TOKEN"]: os.write(1, bytes([b])); time.sleep(0.002)'`,
  'to stderr': 'printf %s "$TOKEN" >&2',
  'in the name of a file':
    'mkdir -p "/tmp/d"; cd /tmp/d; touch -- "$(printf %s "$TOKEN" | tr / _)"; cat -- "$TOKEN"; cd -',
  'in a trace': 'set -x; : "$TOKEN"; set +x',
  'in a syntax error': `eval 'echo "'"$TOKEN"`,
  'behind much other output': 'yes "some other line" | head -c 300000; printf %s "$TOKEN"; yes "more" | head -c 200000',
};

describe.each(['socket', 'attach'] as const)('a secret of a session over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test('is a variable of the shell, and of every shell that replaces it', async () => {
    const session = await stack.fleet.session('variable', { ...SPEC, env: { PLAIN: 'seen' } });
    const { length } = PLANTED;
    const check = async () => (await session.run('echo "$PLAIN ${#TOKEN}"')).stdout;
    expect(await check()).toBe(`seen ${length}\n`);
    await session.run('exec true');
    expect(await check()).toBe(`seen ${length}\n`);
    await session.run('kill -KILL $$');
    expect(await check()).toBe(`seen ${length}\n`);
    await session.restart();
    expect(await check()).toBe(`seen ${length}\n`);
  });

  test('is replaced and counted, and the totals are those of the redacted output', async () => {
    const session = await stack.fleet.session('counted', SPEC);
    expect(await session.run('echo "1 $TOKEN 2"; echo "$TOKEN" >&2')).toEqual(
      expectedResult('counted', {
        stdout: '1 [REDACTED_SECRET] 2\n',
        stderr: '[REDACTED_SECRET]\n',
        output: expect.any(String) as string,
        redactions: { secret: 2 },
      }),
    );
  });

  // S0-45
  test('is stored nowhere in whatever form it was printed: no Redis, log or file', async () => {
    await using inspect = inspectFleet(stack);
    const session = await stack.fleet.session('everywhere', {
      ...SPEC,
      output: { streamBytes: 150_000, maxBytes: 5_000 },
    });
    const seen: string[] = [];
    for (const [name, script] of Object.entries(WAYS)) {
      const command = await session.submit(script, {
        onOutput: ({ data }) => seen.push(Buffer.from(data).toString('latin1')),
      });
      const result = await command.result();
      expect(findForms(PLANTED, Buffer.from(JSON.stringify(result))), name).toEqual([]);
      expect([name, result.redactions.secret ?? 0]).toEqual([name, expect.any(Number)]);
      if (name !== 'in a syntax error') expect(result.redactions.secret ?? 0, name).toBeGreaterThan(0);
      for await (const { data } of command.log()) seen.push(Buffer.from(data).toString('latin1'));
    }
    await session.run('nohup sh -c \'echo "$TOKEN"; sleep 60\' >/dev/null 2>&1 & (sleep 0.2; echo "$TOKEN") &');
    expect(JSON.stringify(await session.info())).not.toContain(PLANTED);
    const missing = await session.run('true', { cwd: `/nowhere/${PLANTED}` });
    expect(missing).toMatchObject({
      outcome: 'error',
      error: { message: expect.stringContaining('[REDACTED_SECRET]') },
    });
    await expect(session.files.read(`/nowhere/${PLANTED}`)).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
      message: expect.stringContaining('[REDACTED_SECRET]'),
    });
    await session.files.write('/tmp/it', PLANTED);
    expect(await session.files.readText('/tmp/it')).toBe(PLANTED);
    const startup = {
      ...SPEC,
      startupCommands: ['yes x | head -c 9000; echo "$TOKEN" >&2; exit 3'],
      commandTimeoutMs: 1,
    };
    const failing = await stack.fleet.session('failing', startup);
    const failed = await failing.run('true');
    expect(failed).toMatchObject({
      outcome: 'error',
      error: { code: 'SESSION_START_FAILED', message: expect.stringContaining('[REDACTED_SECRET]') },
    });
    const literal = await stack.fleet.session('literal', {
      ...SPEC,
      startupCommands: [`echo '${PLANTED}'; false`],
    });
    expect((await literal.run('true')).error?.message).toContain('[REDACTED_SECRET]');
    const ending = await stack.fleet.session('ending', { ...SPEC, shutdownCommands: ['echo "$TOKEN"; exit 4'] });
    await ending.run('true');
    await ending.close();
    await until(
      () => stack.workers[0]?.log ?? '',
      (log) => log.includes('session.shutdown-command-failed'),
    );
    const containers = await inspect.containers();
    const labels = await Promise.all(containers.map(({ id }) => inspect.docker.getContainer(id).inspect()));
    const places = {
      redis: Buffer.from(await everythingInRedis(inspect.redis, stack.namespace), 'latin1'),
      log: Buffer.from(stack.workers.map(({ log }) => log).join('\n')),
      'files of the host': await everythingBelow(stack.stateDirectory),
      'the engine': Buffer.from(JSON.stringify(labels)),
      'what readers saw': Buffer.from(seen.join(''), 'latin1'),
    };
    for (const [place, bytes] of Object.entries(places))
      expect([place, findForms(PLANTED, bytes)]).toEqual([place, []]);
    expect(places['files of the host'].includes('more\nmore\n')).toBe(true);
    expect(places.redis.includes('[REDACTED_SECRET]')).toBe(true);
    // The search finds every form of the secret in bytes that contain all of them.
    expect(findForms(PLANTED, Buffer.concat(Object.values(everyFormOf(PLANTED))))).toHaveLength(12);
  });
});
