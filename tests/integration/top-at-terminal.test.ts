// Uses `shellfleet top` at a real terminal, as an operator does, and in a pipe.
import { Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { LocalTerminal } from '../support/local-terminal.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

let own: OwnRedis;
let fleet: Fleet;
let worker: FakeShellWorker;
let place: { redisUrl: string; namespace: string; sealKey: string };
beforeAll(async () => {
  own = await startOwnRedis();
  place = { redisUrl: own.url, ...newFleet() };
  worker = await startFakeShellWorker({ ...place, id: 'h1', slots: 1 });
  fleet = await Fleet.connect({ redisUrl: own.url, namespace: place.namespace, sealKeys: [place.sealKey] });
  await (await fleet.session('holds')).run('true');
  await using others = await Fleet.connect({ ...connection(), tenant: 'ci' });
  await (await others.session('waits')).submit('true');
});
afterAll(async () => {
  await fleet?.close();
  await worker?.worker.close('end', 1_000);
  await own?.[Symbol.asyncDispose]();
});

const connection = () => ({ redisUrl: own.url, namespace: place.namespace, sealKeys: [place.sealKey] });

const BOLD = '\u001b[1m';
const HOME = '\u001b[H';
const RESTORED = '\u001b[?25h\u001b[?1049l\r';

describe('`shellfleet top`', () => {
  test('shows the load at a terminal of any size, and restores the terminal at q', async () => {
    await using local = LocalTerminal.start(place, ['top', '--interval', '250ms']);
    await local.sees('1 hold a slot, 0 run a command, 1 wait for a slot');
    await local.sees(`${BOLD}HOST`);
    await local.sees('COMMANDS/S');
    await local.sees('ci');
    await local.sees('All slots are taken.');
    await local.resize(12, 30);
    await local.sees('HOST  STATE  FREE');
    local.type('q');
    const { exitCode, before, after } = await local.left();
    expect([exitCode, after]).toEqual([0, before]);
    expect(local.shown).toContain(RESTORED);
  });

  test('has no colours with NO_COLOR, and leaves at Ctrl-C', async () => {
    await using local = LocalTerminal.start(place, ['top'], { NO_COLOR: '1' });
    await local.sees('HOST');
    local.type('\x03');
    const { exitCode, before, after } = await local.left();
    expect([exitCode, after]).toEqual([0, before]);
    expect(local.shown).toContain(RESTORED);
    expect(local.shown).not.toContain(BOLD);
  });

  test('keeps the last load, with the reason, while Redis is away', async () => {
    await using local = LocalTerminal.start(place, ['top', '--interval', '250ms']);
    await local.sees('All slots are taken.');
    own.freeze();
    await local.sees('! Redis');
    await local.sees('All slots are taken.');
    own.thaw();
    await until(
      () => local.shown.split(HOME).at(-1) ?? '',
      (drawn) => drawn.includes('q: leave') && !drawn.includes('! Redis'),
    );
    local.type('q');
    expect((await local.left()).exitCode).toBe(0);
  });

  test('prints one snapshot with --once, and one per interval in a pipe', async () => {
    const cli = new FleetCli(place);
    const once = await cli.text(['top', '--once', '--json']);
    expect({ ...once, stdout: JSON.parse(once.stdout) }).toMatchObject({
      ...{ exitCode: 0, stderr: '' },
      stdout: {
        hosts: [{ id: 'h1', state: 'up', slots: 1, free: 0, gate: { reason: null } }],
        tenants: [
          { tenant: 'ci', held: 0, waiting: 1 },
          { tenant: 'default', held: 1, waiting: 0 },
        ],
        sessions: { held: 1, running: 0, waiting: 1 },
        waiting: [{ reason: 'All slots are taken.', sessions: 1 }],
      },
    });
    const piped = cli.start(['top', '--interval', '250ms']);
    const { stdout } = await until(
      () => piped.output(),
      (shown) => shown.stdout.toString().split('HOST').length > 2,
    );
    expect(stdout.toString()).not.toContain('\u001b');
    piped.child.stdout?.destroy();
    expect((await piped.end).exitCode).toBe(0);
  });
});

describe('`shellfleet ps --all-tenants`', () => {
  const cli = () => new FleetCli(place);

  test('lists the sessions of every tenant, with the tenant', async () => {
    const own = await cli().text(['ps', '--json']);
    expect(
      own.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ id: 'holds' }]);
    expect(own.stdout).not.toContain('tenant');
    const all = await cli().text(['ps', '--all-tenants', '--json']);
    expect(
      all.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { id: 'waits', tenant: 'ci', state: 'queued', position: 1 },
      { id: 'holds', tenant: 'default', state: 'ready' },
    ]);
    const table = await cli().text(['ps', '--all-tenants', '--state', 'queued']);
    expect(
      table.stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/ +/).slice(0, 3)),
    ).toEqual([
      ['TENANT', 'SESSION', 'STATE'],
      ['ci', 'waits', 'queued'],
    ]);
  });
});
