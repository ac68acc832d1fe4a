import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fleetKeys, hostKeys } from '@shellfleet/protocol';
import { openRedis, parseRedisUrl } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// The audit of two real workers in one stream of Redis. One of them is killed, and the other one ends in order.

const directory = mkdtempSync(join(tmpdir(), 'sf-audit-redis-'));
const heads = join(directory, 'heads.jsonl');
let stack: TestFleet;
let cli: FleetCli;
let redis: Redis;
/** Positions and events that the exports of the running fleet printed. */
let followed: Exported[];

interface Exported {
  position: string;
  host: string;
  boot: string;
  n: number;
  type: string;
  script?: string;
}

const keys = () => fleetKeys(stack.keyspace);
const parse = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Exported);

/** Runs a command, and waits until its end is in the stream. */
async function runRecorded(session: string, script: string): Promise<void> {
  const { auditRecords } = keys();
  const before = await redis.xlen(auditRecords);
  await (await stack.fleet.session(session, { secrets: { TOKEN: 'hunter2hunter2' } })).run(script);
  await until(
    () => redis.xlen(auditRecords),
    (length) => length > before,
  );
}

/** Follows the audit from a position until it has printed a record of the command, then ends as if it was killed. */
async function follow(since: readonly string[], script: string): Promise<Exported[]> {
  const { child, output, end } = cli.start(['audit', 'export', '--follow', ...since]);
  await until(
    () => output().stdout.toString(),
    (text) => parse(text).some((record) => record.script?.startsWith(script)),
  );
  child.kill('SIGKILL');
  return parse((await end).stdout.toString());
}

beforeAll(async () => {
  const config = join(directory, 'config.yaml');
  writeFileSync(config, 'audit: { store: redis }\n');
  stack = await startFleet({ workers: 2, slots: 1, env: { SHELLFLEET_CONFIG: config } });
  cli = new FleetCli(stack);
  redis = openRedis(parseRedisUrl(stack.redisUrl), 'producer', 'attacker');
  const sessions = ['a', 'b'];
  for (const session of sessions) await runRecorded(session, `echo ${session} # hunter2hunter2`);
  const first = await follow([], 'echo b');
  for (const session of sessions) await runRecorded(session, `echo again ${session}`);
  followed = [...first, ...(await follow(['--since', first.at(-1)?.position ?? ''], 'echo again b'))];
  const [killed, stopped] = stack.workers;
  await Promise.all([killed?.kill(), stopped?.stop('SIGTERM')]);
  // The key of a killed process expires after 5 s.
  await redis.del(hostKeys(stack.keyspace, 'h1').boot);
  writeFileSync(heads, (await cli.text(['audit', 'heads'])).stdout);
  for (const key of [keys().auditRecords, keys().auditHeads]) await redis.copy(key, `${key}:whole`);
}, 60_000);
afterAll(async () => {
  redis?.disconnect();
  await stack?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

async function verify(...more: string[]) {
  const { exitCode, stdout } = await cli.text(['audit', 'verify', '--json', ...more]);
  const findings = stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { type: string; host: string; message: string })
    .map(({ type, host, message }) => `${type} ${host}: ${message}`);
  return { exitCode, findings };
}

const KILLED =
  'unclosed h1: its process was killed, or did not reach Redis when it ended: its last records may be missing';

describe('an audit in Redis', () => {
  test('is verified as whole, and tells that a worker was killed', async () => {
    expect(await verify()).toEqual({ exitCode: 0, findings: [KILLED] });
    expect(await verify('--heads', heads)).toEqual({ exitCode: 0, findings: [KILLED] });
  });

  test('is exported without gap or double by runs that continue after a kill', async () => {
    const whole = parse((await cli.text(['audit', 'export'])).stdout);
    expect(followed).toEqual(whole.slice(0, followed.length));
    expect(new Set(whole.map(({ host }) => host))).toEqual(new Set(['h1', 'h2']));
    expect(whole.at(-1)).toMatchObject({ host: 'h2', type: 'closed' });
    const { stdout } = await cli.text(['audit', 'export', '--codes', '--since', whole.at(-3)?.position ?? '']);
    expect(stdout.split('\n').slice(0, -1)).toHaveLength(2);
    expect(stdout).toMatch(/^\{"position":"\d+-\d+\/\d+","namespace":"[^}]*,"mac":"[\w-]{43}","record":\{"n":/);
  });

  test('holds neither a secret nor a script in clear', async () => {
    const stored = JSON.stringify(await redis.xrange(keys().auditRecords, '-', '+'));
    expect(stored).not.toMatch(/hunter2|echo /);
    expect(JSON.stringify(followed)).toContain('echo a # [REDACTED_SECRET]');
  });

  /** Changes the stream, which `restore` undoes. */
  type Tamper = (entries: Entries) => Promise<unknown>;
  type Entries = [id: string, fields: string[]][];
  const ofHost = (entries: Entries, host: string) => entries.filter(([, fields]) => fields[1]?.startsWith(`${host} `));
  const last = (entries: Entries, host: string) => ofHost(entries, host).at(-1);
  /** Returns the id of an entry between others of its chain: the process wrote one for each command, and a last one. */
  const middle = (entries: Entries) => ofHost(entries, 'h2')[1]?.[0] ?? '';

  test.each<[string, Tamper, string[], expected: RegExp[]]>([
    [
      'a removed record',
      (entries) => redis.xdel(keys().auditRecords, middle(entries)),
      [],
      [/^missing h2: records? \d+.* missing before it$/],
    ],
    [
      'a changed record',
      async (entries) => {
        const { auditRecords } = keys();
        await redis.del(auditRecords);
        for (const [id, fields] of entries)
          await redis.xadd(
            auditRecords,
            id,
            ...fields.map((text, at) => (id === middle(entries) && at === 5 ? flip(text) : text)),
          );
      },
      [],
      [/^altered h2: the entry was altered, moved/, /^missing h2: records? \d+.* missing before it$/],
    ],
    [
      'a tail that was cut off',
      (entries) => redis.xdel(keys().auditRecords, last(entries, 'h1')?.[0] ?? ''),
      [],
      [/^cut-off h1: records? \d+.* cut off: a head of record \d+ was kept$/],
    ],
    [
      'a whole chain that was removed with its head, by kept heads',
      async (entries) => {
        await redis.xdel(keys().auditRecords, ...ofHost(entries, 'h2').map(([id]) => id));
        await redis.hdel(keys().auditHeads, last(entries, 'h2')?.[1][1] ?? '');
      },
      ['--heads', heads],
      [/^cut-off h2: records 1 to \d+ are cut off: a head of record \d+ was kept$/],
    ],
  ])('shows %s', async (_, tamper, more, expected) => {
    for (const key of [keys().auditRecords, keys().auditHeads]) await redis.copy(`${key}:whole`, key, 'REPLACE');
    await tamper(await redis.xrange(keys().auditRecords, '-', '+'));
    const { exitCode, findings } = await verify(...more);
    expect({ exitCode, findings: findings.filter((finding) => finding !== KILLED) }).toEqual({
      exitCode: 1,
      findings: expected.map((pattern) => expect.stringMatching(pattern)),
    });
  });
});

/** Changes a character in the middle. */
function flip(text: string): string {
  const middle = Math.floor(text.length / 2);
  return `${text.slice(0, middle)}${text[middle] === 'A' ? 'B' : 'A'}${text.slice(middle + 1)}`;
}
