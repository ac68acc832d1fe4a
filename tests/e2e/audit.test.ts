import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Fleet } from '@shellfleet/client';
import { fleetKeys, hostKeys } from '@shellfleet/protocol';
import { openRedis, parseRedisUrl } from '@shellfleet/redis';
import { logErrorsInto, openAudit } from '@shellfleet/worker/test-support';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// The audit of real workers, verified with the real command line: two hosts, two tenants, and a chain that is older
// than its retention.

const HOUR_MS = 3_600_000;
const directory = mkdtempSync(join(tmpdir(), 'sf-audit-'));
const config = join(directory, 'config.yaml');

let stack: TestFleet;
let other: Fleet;
let cli: FleetCli;
let redis: ReturnType<typeof openRedis>;
/** Copy of the state directory after both hosts had stopped, with all heads in Redis. */
let whole: string;
/** Copy of the state directory some commands before `whole`. */
let older: string;
let copies = 0;

beforeAll(async () => {
  writeFileSync(config, 'audit: { retention: 1h }\n');
  stack = await startFleet({ workers: 2, env: { SHELLFLEET_CONFIG: config } });
  const [first, second] = stack.workers;
  if (first === undefined || second === undefined) throw new Error('There are two workers');
  cli = new FleetCli(stack);
  redis = openRedis(parseRedisUrl(stack.redisUrl), 'producer', 'attacker');
  other = await stack.connect({ tenant: 'other' });
  for (const name of readdirSync(join(stack.stateDirectory, 'hosts'))) {
    const of = JSON.parse(readFileSync(join(stack.stateDirectory, 'hosts', name, 'audit', 'chain-of.json'), 'utf8'));
    names[of.host] = name;
  }
  await second.stop('SIGTERM');
  for (const [fleet, id] of [
    [stack.fleet, 'a'],
    [other, 'b'],
  ] as const) {
    const session = await fleet.session(id, { secrets: { TOKEN: 'hunter2hunter2' } });
    for (const name of ['one', 'two', 'three', 'four']) await session.run(`echo ${name} # hunter2hunter2`);
    await session.close();
  }
  await until(
    () => existsSync(chainOf(stack.stateDirectory, 'h1', 'default')),
    (written) => written,
  );
  older = copy(stack.stateDirectory);
  const session = await stack.fleet.session('c');
  for (const name of ['five', 'six']) await session.run(`echo ${name}`);
  await session.close();
  await writeAged();
  await first.stop('SIGTERM');
  await second.start();
  await runAged();
  await second.stop('SIGTERM');
  whole = copy(stack.stateDirectory);
}, 120_000);
afterAll(async () => {
  redis?.disconnect();
  await stack?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

/**
 * Writes three files of the tenant `aged` for the second host, as with a retention of a day. Two are older than an
 * hour.
 */
async function writeAged(): Promise<void> {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    const audit = await openAudit({
      ...{
        directory: auditOf(stack.stateDirectory, 'h2'),
        namespace: stack.keyspace,
        hostId: 'h2',
        stateDirectoryId: 'any',
        sealKeys: [stack.sealKey],
      },
      ...{ retentionMs: 24 * HOUR_MS, noted: true, anchored: new Map(), logger: logErrorsInto([]) },
    });
    for (const agoMs of [20 * HOUR_MS, 10 * HOUR_MS, HOUR_MS / 2]) {
      vi.setSystemTime(now - agoMs);
      for (const entry of ['x', 'y'])
        await audit.record('aged', { type: 'start', session: 's', generation: '1', entry, fence: 1, epoch: 1 });
    }
    await audit.close();
  } finally {
    vi.useRealTimers();
  }
}

async function runAged(): Promise<void> {
  const session = await (await stack.connect({ tenant: 'aged' })).session('d');
  await session.run('echo now');
  await session.close();
}

/** The names of the hosts' directories are derived from their ids. */
const names: Record<string, string> = {};
const auditOf = (stateDirectory: string, host: string) => join(stateDirectory, 'hosts', names[host] ?? '', 'audit');
const chainOf = (stateDirectory: string, host: string, tenant: string) =>
  join(auditOf(stateDirectory, host), `t-${tenant}`);
const filesOf = (...of: Parameters<typeof chainOf>) =>
  readdirSync(chainOf(...of))
    .sort()
    .map((name) => join(chainOf(...of), name));

/** Copies the part of a state directory that the command line reads. */
function copy(stateDirectory: string): string {
  const to = join(directory, `copy-${++copies}`);
  for (const [host, name] of Object.entries(names)) {
    cpSync(auditOf(stateDirectory, host), auditOf(to, host), { recursive: true });
    cpSync(join(stateDirectory, 'hosts', name, 'key'), join(to, 'hosts', name, 'key'));
  }
  return to;
}

/** Changes the lines of a tenant's audit on the first host, which is one file. */
function edit(stateDirectory: string, tenant: string, change: (lines: string[]) => string[]): void {
  const [path = ''] = filesOf(stateDirectory, 'h1', tenant);
  writeFileSync(
    path,
    change(readFileSync(path, 'utf8').trimEnd().split('\n'))
      .map((line) => `${line}\n`)
      .join(''),
  );
}

async function verify(stateDirectory: string, ...more: string[]) {
  const args = ['audit', 'verify', '--json', '--state-dir', stateDirectory, ...more];
  const { exitCode, stdout, stderr } = await cli.text(args);
  const findings = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { type: string; host: string; tenant: string; where: string; message: string })
    .map(({ type, host, tenant, where, message }) =>
      toNames(`${type} ${host} ${tenant} ${where.slice(stateDirectory.length)}: ${message}`),
    );
  return { exitCode, findings, stderr };
}

const toNames = (text: string) =>
  Object.entries(names).reduce((replaced, [host, name]) => replaced.replaceAll(name, host), text);

describe('the audit of a fleet', () => {
  test('is verified as whole for two hosts and three tenants, also after removals', async () => {
    const { exitCode, findings, stderr } = await verify(whole);
    expect({ exitCode, findings }).toEqual({ exitCode: 0, findings: [] });
    expect(stderr).toContain('of 3 chains were verified, and 0 findings');
    // The host has removed the oldest of the three written files. The other two remain beside the file of this hour.
    expect(filesOf(whole, 'h2', 'aged').map((path) => path.split('/').at(-1))).toEqual([
      '000000000005.jsonl',
      '000000000007.jsonl',
    ]);
  });

  test('is exported with every record, redacted, and verifies from kept heads without Redis', async () => {
    const { stdout } = await cli.text(['audit', 'export', '--state-dir', whole]);
    const records = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const scripts = records.flatMap(({ host, tenant, script }) =>
      script === undefined ? [] : `${host} ${tenant} ${script}`,
    );
    expect(scripts).toContain('h1 default echo one # [REDACTED_SECRET]');
    expect(scripts).toContain('h1 other echo four # [REDACTED_SECRET]');
    expect(scripts).toContain('h2 aged echo now');
    expect(stdout).not.toContain('hunter2');
    expect(records.find(({ type }) => type === 'pruned')).toMatchObject({ host: 'h2', tenant: 'aged', through: 4 });

    const heads = join(directory, 'heads.jsonl');
    const nowhere = { env: { SHELLFLEET_REDIS_URL: 'redis://127.0.0.1:1' } };
    writeFileSync(heads, (await cli.text(['audit', 'heads', '--state-dir', whole], nowhere)).stdout);
    expect((await cli.text(['audit', 'verify', '--state-dir', whole, '--heads', heads], nowhere)).exitCode).toBe(0);
    expect(await cli.text(['audit', 'verify', '--state-dir', older, '--heads', heads], nowhere)).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('cut-off: host h1, tenant default'),
    });
  });

  /** A change of the records, and the findings that verify reports about it. */
  interface Tampering {
    what: string;
    /** Host and tenant of the changed chain. */
    chain: string;
    tamper(stateDirectory: string): void;
    findings: (string | RegExp)[];
  }

  const AT = '/hosts/h1/audit/t-default/000000000001.jsonl';
  const OTHER = '/hosts/h1/audit/t-other/000000000001.jsonl';

  // Each row changes three chains, so that the command line runs once for three changes.
  test.each<[Tampering[]]>([
    [
      [
        {
          what: 'an altered byte',
          chain: 'h1 default',
          tamper: (at) =>
            edit(at, 'default', ([one = '', two = '', ...rest]) => [
              one,
              two.replace('"entry":"', '"entry":"0'),
              ...rest,
            ]),
          findings: [`altered h1 default ${AT}:2: record 2 was altered`],
        },
        {
          what: 'a deleted record',
          chain: 'h1 other',
          tamper: (at) => edit(at, 'other', ([one = '', two = '', _, ...rest]) => [one, two, ...rest]),
          findings: [`missing h1 other ${OTHER}:3: record 3 is missing before it`],
        },
        {
          what: 'a file removed between others',
          chain: 'h2 aged',
          tamper: (at) => rmSync(filesOf(at, 'h2', 'aged')[0] ?? ''),
          findings: ['missing h2 aged /hosts/h2/audit/t-aged/000000000007.jsonl:1: records 5 to 6 are missing'],
        },
      ],
    ],
    [
      [
        {
          what: 'two exchanged records',
          chain: 'h1 default',
          tamper: (at) =>
            edit(at, 'default', ([one = '', two = '', three = '', ...rest]) => [one, three, two, ...rest]),
          findings: [
            `missing h1 default ${AT}:2: record 2 is missing before it`,
            `altered h1 default ${AT}:3: record 2 is in the wrong place, after record 3`,
            `missing h1 default ${AT}:4: record 3 is missing before it`,
          ],
        },
        {
          what: 'the end of a file cut off',
          chain: 'h1 other',
          tamper: (at) => edit(at, 'other', (lines) => lines.slice(0, -2)),
          findings: [/^cut-off h1 other .*t-other\/000000000001\.jsonl:\d+: records \d+ to \d+ are cut off/],
        },
        {
          what: 'the last file removed',
          chain: 'h2 aged',
          tamper: (at) => rmSync(filesOf(at, 'h2', 'aged')[1] ?? ''),
          findings: [
            'missing h2 aged /hosts/h2/audit/t-aged/000000000005.jsonl:1: records 1 to 4 are missing',
            /^cut-off h2 aged .*t-aged\/000000000005\.jsonl:2: records 7 to \d+ are cut off/,
          ],
        },
      ],
    ],
    [
      [
        {
          what: 'an older copy in its place',
          chain: 'h1 default',
          tamper: (at) => cpSync(chainOf(older, 'h1', 'default'), chainOf(at, 'h1', 'default'), { recursive: true }),
          findings: [/^cut-off h1 default .*t-default\/000000000001\.jsonl:\d+: records \d+ to \d+ are cut off/],
        },
        {
          what: 'all records of a tenant removed',
          chain: 'h1 other',
          tamper: (at) => rmSync(chainOf(at, 'h1', 'other'), { recursive: true }),
          findings: [/^cut-off h1 other \/hosts\/h1\/audit\/t-other: records 1 to \d+ are cut off/],
        },
        {
          what: 'the audit of a host removed',
          chain: 'h2 *',
          tamper: (at) => rmSync(auditOf(at, 'h2'), { recursive: true }),
          findings: ['missing h2 * /hosts/h2/audit: the audit of this host is missing'],
        },
      ],
    ],
  ])('is checked by verify, which names file and record of each tampering (%#)', async (tamperings) => {
    const at = copy(whole);
    for (const { tamper } of tamperings) tamper(at);
    const { exitCode, findings } = await verify(at);
    expect(exitCode).toBe(1);
    for (const { what, chain, findings: expected } of tamperings) {
      const found = findings.filter((finding) => finding.split(' ').slice(1, 3).join(' ') === chain);
      const wanted = expected.map((one) => (typeof one === 'string' ? one : expect.stringMatching(one)));
      expect([what, found]).toEqual([what, wanted]);
    }
  });
});

// A state directory does not prove by its own content which host it belongs to.
describe('verify, for an audit that is not in its place,', () => {
  const heads = join(directory, 'kept-heads.jsonl');
  beforeAll(async () => {
    writeFileSync(heads, (await cli.text(['audit', 'heads', '--state-dir', whole])).stdout);
  });
  const hostOf = (at: string, host: string) => join(at, 'hosts', names[host] ?? '');
  const replace = (from: string, to: string) => {
    rmSync(to, { recursive: true });
    cpSync(from, to, { recursive: true });
  };
  const GONE = 'missing h2 * /hosts: the audit of this host is missing';
  const FOREIGN = [
    'misplaced h1 * /hosts/h2/audit: this is not the directory of host h1',
    expect.stringMatching(/^misplaced h1 \* \/hosts\/h2\/audit: .*\/hosts\/h1\/audit is an audit of the same host$/),
  ];

  test.each<[string, (at: string) => void, unknown[]]>([
    ['the whole directory of a host removed', (at) => rmSync(hostOf(at, 'h2'), { recursive: true }), [GONE]],
    [
      "the audit replaced by a copy of another host's",
      (at) => replace(auditOf(at, 'h1'), auditOf(at, 'h2')),
      ['missing h2 * /hosts/h2/audit: the audit of this host is missing', ...FOREIGN],
    ],
    [
      "the whole directory replaced by a copy of another host's",
      (at) => replace(hostOf(at, 'h1'), hostOf(at, 'h2')),
      [
        'missing h2 * /hosts/h2/audit: the audit of this host is missing',
        ...FOREIGN,
        expect.stringMatching(
          /^misplaced h1 \* \/hosts\/h2\/audit: its host has the key of .*\/hosts\/h1: one of the two/,
        ),
      ],
    ],
    [
      'the directory of a host under another name',
      (at) => renameSync(hostOf(at, 'h2'), join(at, 'hosts', 'default')),
      ['misplaced h2 * /hosts/default/audit: this is not the directory of host h2'],
    ],
  ])('finds %s with the heads of Redis and with kept ones', async (_what, tamper, expected) => {
    const at = copy(whole);
    tamper(at);
    expect(await verify(at)).toMatchObject({ exitCode: 1, findings: expected });
    expect(await verify(at, '--heads', heads)).toMatchObject({ exitCode: 1, findings: expected });
  });

  test('fails for a state directory from which every host was removed', async () => {
    const empty = mkdtempSync(join(directory, 'empty-'));
    expect(await verify(empty)).toMatchObject({
      exitCode: 1,
      findings: ['missing * * /hosts: no host has its audit here'],
      stderr: expect.stringContaining('in other state directories: h1, h2.'),
    });
    expect(await verify(empty, '--heads', heads)).toMatchObject({ exitCode: 1, findings: [expect.any(String), GONE] });
  });

  test('names hosts of another machine as unchecked, and reports no finding for them', async () => {
    const { audits } = fleetKeys(stack.keyspace);
    await redis.hset(audits, 'far', 'another');
    expect(await verify(whole)).toMatchObject({
      exitCode: 0,
      findings: [],
      stderr: expect.stringContaining('Not checked, because their audits are in other state directories: far.'),
    });
    await redis.hdel(audits, 'far');
  });

  test('names a host without a head in Redis, whose end is not proven', async () => {
    const { audits } = fleetKeys(stack.keyspace);
    const place = (await redis.hget(audits, 'h1')) ?? '';
    await redis.hdel(audits, 'h1');
    expect(await verify(whole)).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('records that were cut off are not found: h1.'),
    });
    await redis.hset(audits, 'h1', place);
  });
});

describe('audit verify', () => {
  test('reports a head that was changed in Redis', async () => {
    const key = hostKeys(stack.keyspace, 'h1').audit;
    const genuine = (await redis.hget(key, 'default')) ?? '';
    const { n, mac } = JSON.parse(genuine) as { n: number; mac: string };
    for (const [head, message] of [
      [
        { n, mac: `${mac.slice(0, -1)}${mac.endsWith('A') ? 'B' : 'A'}` },
        `record ${n} is not the one whose head was kept`,
      ],
      [{ n: n + 3, mac }, `records ${n + 1} to ${n + 3} are cut off`],
    ] as const) {
      await redis.hset(key, 'default', JSON.stringify(head));
      expect(await verify(whole)).toMatchObject({ exitCode: 1, findings: [expect.stringContaining(message)] });
    }
    await redis.hset(key, 'default', genuine);
    expect(await verify(whole)).toMatchObject({ exitCode: 0 });
  });
});

describe('a worker that is killed while it writes the audit', () => {
  test('leaves an incomplete last line, which verify does not report as tampering', async () => {
    const [worker] = stack.workers;
    await worker?.start();
    const session = await stack.fleet.session('e');
    const commands = await Promise.all(Array.from({ length: 50 }, (_, n) => session.submit(`echo ${n}`)));
    await commands[25]?.result();
    await worker?.kill();
    // Half a record at the end, as after a kill in the middle of a write.
    const [path = ''] = filesOf(stack.stateDirectory, 'h1', 'default');
    appendFileSync(path, '{"mac":"abc","rec');
    const [torn] = (await verify(stack.stateDirectory)).findings;
    expect(torn).toMatch(/^torn h1 default .*: a crash or a full disk left this line incomplete$/);
    await worker?.start();
    await Promise.all(commands.map((command) => command.result()));
    await until(
      () => readFileSync(path, 'utf8'),
      (text) => text.includes('"interrupted"'),
    );
    expect(await verify(stack.stateDirectory)).toMatchObject({ exitCode: 0, findings: [torn] });
    await session.close();
  });
});
