import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockDirectory } from '@shellfleet/worker/test-support';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { fleetIdOf } from '../support/keyspace.ts';
import { runCli } from '../support/run-cli.ts';

const docker = new Docker({ socketPath: inject('dockerHost').replace(/^unix:\/\//, '') });
const [KEPT, GONE, OTHER] = ['cccccccccccc', 'dddddddddddd', 'eeeeeeeeeeee'];

let stage: ClientStage;
let directory: string;
const made = new Map<string, string>();
beforeAll(async () => {
  stage = await setClientStage();
  directory = await mkdtemp(join(tmpdir(), 'sf-prune-'));
  await keep('kept', KEPT);
  await mkdir(join(directory, 'hosts', 'old'), { recursive: true });
  await mkdir(join(directory, 'hosts', 'old-up'), { recursive: true });
  await plant('of a host that keeps its fleet', 'kept', KEPT);
  await plant('of a host of another fleet now', 'kept', GONE);
  await plant('of a directory that is gone', 'none', GONE);
  // Root can read every directory, so reading fails here for another reason: `fleets` is a file.
  await mkdir(join(directory, 'hosts', 'closed'));
  await writeFile(join(directory, 'hosts', 'closed', 'fleets'), '');
  await plant('of a host whose fleets cannot be read', 'closed', GONE);
  await plant('of the fleet of this environment', 'none', fleetIdOf(stage.namespace));
  await plant('of an older version', 'old', undefined);
  await plant('of an older version that is up', 'old-up', undefined);
});
afterAll(async () => {
  for (const id of made.values())
    await docker
      .getContainer(id)
      .remove({ force: true })
      .catch(() => {});
  await rm(directory, { recursive: true, force: true });
  await stage?.[Symbol.asyncDispose]();
});

async function keep(host: string, fleetId: string): Promise<void> {
  const fleets = join(directory, 'hosts', host, 'fleets');
  await mkdir(fleets, { recursive: true });
  await writeFile(join(fleets, `${stage.namespace}.id`), `${fleetId}\n`);
}

/**
 * Makes a container as a host does. The engine makes no directory for a mount, so that a missing one is removed
 * afterwards.
 */
async function plant(name: string, host: string, fleetId: string | undefined): Promise<void> {
  const source = join(directory, 'hosts', host, 's', `${made.size}`);
  await mkdir(source, { recursive: true });
  const labels = { namespace: stage.namespace, tenant: 't', session: 's', host, ...(fleetId && { fleet: fleetId }) };
  const { id } = await docker.createContainer({
    Image: inject('sessionImage'),
    Cmd: ['true'],
    Labels: Object.fromEntries(Object.entries(labels).map(([label, value]) => [`shellfleet.${label}`, value])),
    HostConfig: { Mounts: [{ Type: 'bind', Source: source, Target: '/.shellfleet', ReadOnly: true }] },
  });
  made.set(name, id);
  if (host === 'none') await rm(join(directory, 'hosts', host), { recursive: true });
}

async function left(): Promise<string[]> {
  const found = await docker.listContainers({
    all: true,
    filters: { label: [`shellfleet.namespace=${stage.namespace}`] },
  });
  return [...made].filter(([, id]) => found.some(({ Id }) => Id === id)).map(([name]) => name);
}

const nothing = async () => {};

/** Runs `prune` with SHELLFLEET_NAMESPACE, because other tests have containers on this engine. */
const prune = (...flags: string[]) =>
  runCli(stage, ['prune', ...flags], { env: { DOCKER_HOST: inject('dockerHost') } });

describe('`shellfleet prune`', () => {
  test('removes containers without an owner, of all versions, after a confirmation', async () => {
    await using _up = await lockDirectory(join(directory, 'hosts', 'old-up')).then((lock) => ({
      [Symbol.asyncDispose]: () => lock.release(),
    }));
    const all = [...made.keys()];
    const listed = (await prune('--dry-run', '--json')).stdout.toString().trimEnd().split('\n');
    const goes = listed
      .map((line) => JSON.parse(line) as { id: string; removed: boolean })
      .filter(({ removed }) => removed);
    const nobodys = ['of a host of another fleet now', 'of a directory that is gone', 'of an older version'];
    expect(goes.map(({ id }) => id).sort()).toEqual(nobodys.map((name) => made.get(name)).sort());
    expect(await prune()).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('prune needs --yes') });
    expect(await left()).toEqual(all);
    expect(await prune('--yes')).toMatchObject({ exitCode: 0, stderr: 'shellfleet: 3 of them were removed.\n' });
    expect(await left()).toEqual(all.filter((name) => !nobodys.includes(name)));
    expect(await prune('--yes')).toMatchObject({ exitCode: 0, stderr: 'shellfleet: There is nothing to remove.\n' });
    await prune('--fleet', KEPT, '--yes');
    expect(await left()).toEqual([
      'of a host whose fleets cannot be read',
      'of the fleet of this environment',
      'of an older version that is up',
    ]);
  });

  test.each<[string, string, () => Promise<void>, string, boolean]>([
    ['the answer y removes the listed containers', 'y', nothing, '1 of them was removed.', false],
    ['any other answer removes nothing', '', nothing, 'Nothing was removed.', true],
    ['a container with a new owner stays', 'y', () => keep('asked', GONE), '0 of them were removed.', true],
  ])('asks at a terminal: %s', async (_what, answer, meanwhile, said, stays) => {
    await prune('--yes'); // removes what other tests have left
    await plant('asked about', 'asked', GONE);
    await using _removed = {
      async [Symbol.asyncDispose]() {
        await docker
          .getContainer(made.get('asked about') ?? '')
          .remove({ force: true })
          .catch(() => {});
        await rm(join(directory, 'hosts', 'asked'), { recursive: true });
      },
    };
    const cli = new FleetCli({ redisUrl: stage.own.url, namespace: stage.namespace, sealKey: stage.sealKey });
    const { exitCode, shown } = await cli.atTerminal(
      ['prune'],
      async (type, untilShown) => {
        await untilShown('[y/N]');
        await meanwhile();
        type(`${answer}\r`);
      },
      { env: { DOCKER_HOST: inject('dockerHost') } },
    );
    expect({ exitCode, asked: shown.includes('Remove 1 of them? [y/N] '), said: shown.includes(said) }).toEqual({
      exitCode: 0,
      asked: true,
      said: true,
    });
    expect((await left()).includes('asked about')).toBe(stays);
  });

  test('removes containers that are kept for a post-mortem only with --kept', async () => {
    const own = fleetIdOf(stage.namespace);
    await using stack = new AsyncDisposableStack();
    const planted = async (name: string, host: string, fleetId: string) => {
      await plant(name, host, fleetId);
      const id = made.get(name) ?? '';
      stack.defer(() =>
        docker
          .getContainer(id)
          .remove({ force: true })
          .catch(() => {}),
      );
      if (name.startsWith('kept'))
        await docker.getContainer(id).rename({ name: `shellfleet-kept-1-${id.slice(0, 12)}` });
      return name;
    };
    await keep('of-other', KEPT);
    await keep('here', OTHER);
    const live = await planted('live', 'none', own);
    const liveOfOther = await planted('live of another fleet', 'of-other', KEPT);
    const [ofOwn, ofOther, ofDirectory, ofNobody] = [
      await planted('kept of this fleet', 'none', own),
      await planted('kept of another fleet', 'of-other', KEPT),
      await planted('kept of this state directory', 'here', OTHER),
      await planted('kept of nobody', 'none', GONE),
    ];
    const names = [live, liveOfOther, ofOwn, ofOther, ofDirectory, ofNobody];
    const here = async () => (await left()).filter((name) => names.includes(name));
    const stay = await prune('--dry-run');
    expect(stay.stdout.toString()).toMatch(
      new RegExp(
        `shellfleet-kept-1-\\S+ .* ${own} .*stays: it is kept for a post-mortem; --kept --fleet ${own} removes it`,
      ),
    );
    await prune('--yes');
    expect(await here()).toEqual([live, liveOfOther, ofOwn, ofOther, ofDirectory]);
    await prune('--kept', '--yes');
    expect(await here()).toEqual([live, liveOfOther, ofOther, ofDirectory]);
    await prune('--kept', '--fleet', KEPT, '--yes');
    expect(await here()).toEqual([live, liveOfOther, ofDirectory]);
    await runCli(stage, ['prune', '--kept', '--yes'], {
      env: { DOCKER_HOST: inject('dockerHost'), SHELLFLEET_STATE_DIR: directory },
    });
    expect(await here()).toEqual([live, liveOfOther]);
  });
});

/** Names an image without content, which no other test has. */
async function nameImage(...names: string[]): Promise<void> {
  const [first = '', ...others] = names;
  const [repo = '', tag = ''] = first.split(':');
  const content = join(directory, 'content');
  await mkdir(content, { recursive: true });
  await writeFile(join(content, 'made-for'), `${stage.namespace} ${first}`);
  const packing = spawn('tar', ['--create', '--directory', content, '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const progress = await docker.importImage(packing.stdout, { repo, tag });
  await new Promise((resolve) => docker.modem.followProgress(progress, resolve));
  for (const other of others) await docker.getImage(first).tag({ repo, tag: other.split(':')[1] ?? '' });
}

describe('the session images of a state directory', () => {
  test('are removed by `prune --images` when unused, which lists why others stay', async () => {
    const users = join(directory, 'users');
    const [ofHere, ofLost, ofWorker, ofUnknown] = Array.from({ length: 4 }, () => randomBytes(4).toString('hex'));
    const env = {
      DOCKER_HOST: inject('dockerHost'),
      XDG_STATE_HOME: users,
      SHELLFLEET_STATE_DIR: join(directory, 'up-here'),
    };
    const records = join(users, 'shellfleet', 'image-owners');
    await mkdir(records, { recursive: true });
    const record = async (name: string, owner = '', version = '0.0.2') => {
      const own = join(directory, name);
      await writeFile(join(records, `${name}.json`), JSON.stringify({ owner, directory: own, version }));
      if (name === 'up-lost') return;
      await mkdir(join(own, 'hosts', 'h'), { recursive: true });
      await writeFile(join(own, 'image-owner'), owner);
    };
    await record('up-here', ofHere);
    await record('up-lost', ofLost);
    await record('up-worker', ofWorker);
    await using _worker = await lockDirectory(join(directory, 'up-worker', 'hosts', 'h')).then((lock) => ({
      [Symbol.asyncDispose]: () => lock.release(),
    }));
    const name = (tag: string) => `shellfleet/session:${tag}`;
    const content = name(randomBytes(6).toString('hex'));
    const usedName = name(`slim-0.0.1-${ofLost}`);
    const goes = [name(`slim-0.0.1-${ofHere}`), name(`full-0.0.2-${ofLost}`), content].sort();
    const stays: Record<string, RegExp> = {
      [name(`slim-0.0.2-${ofHere}`)]: /the next `up` in .*up-here uses it/,
      [name(`slim-0.0.1-${ofWorker}`)]: /a worker that has .*up-worker.hosts.h may use it/,
      [name(`slim-0.0.1-${ofUnknown}`)]: /no state directory of this user is known to have the owner/,
      [usedName]: /a container uses it/,
    };
    await using stack = new AsyncDisposableStack();
    for (const one of [...goes, ...Object.keys(stays)])
      stack.defer(() =>
        docker
          .getImage(one)
          .remove({ force: true })
          .catch(() => {}),
      );
    await nameImage(...goes);
    for (const one of Object.keys(stays)) await nameImage(one);
    const { id } = await docker.createContainer({ Image: usedName, Cmd: ['true'] });
    stack.defer(() => docker.getContainer(id).remove({ force: true }));

    const mine = [...goes, ...Object.keys(stays)];
    const listed = (await runCli(stage, ['prune', '--images', '--dry-run', '--json'], { env })).stdout.toString();
    const found = listed
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { name: string; owner?: string; removed: boolean })
      .filter((one) => mine.includes(one.name));
    expect(
      found
        .filter(({ removed }) => removed)
        .map((one) => one.name)
        .sort(),
    ).toEqual(goes);
    const reasons = Object.fromEntries(found.filter(({ removed }) => !removed).map((one) => [one.name, one.owner]));
    expect(reasons).toEqual(
      Object.fromEntries(Object.entries(stays).map(([one, why]) => [one, expect.stringMatching(why)])),
    );

    expect(await runCli(stage, ['prune', '--images', '--yes'], { env })).toMatchObject({ exitCode: 0 });
    const there = (await docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? []);
    expect(mine.filter((one) => there.includes(one)).sort()).toEqual(Object.keys(stays).sort());
  });

  test('are named by `down`, with the command that removes them', async () => {
    const owner = randomBytes(4).toString('hex');
    const own = join(directory, 'down-here');
    await mkdir(own, { recursive: true });
    await writeFile(join(own, 'image-owner'), owner);
    const names = ['full-0.0.2', 'slim-0.0.2'].map((tag) => `shellfleet/session:${tag}-${owner}`);
    await using stack = new AsyncDisposableStack();
    for (const one of names) stack.defer(() => docker.getImage(one).remove());
    await nameImage(...names);
    const { stderr } = await runCli(stage, ['down'], {
      env: { DOCKER_HOST: inject('dockerHost'), SHELLFLEET_STATE_DIR: own },
    });
    expect(stderr.trimEnd().split('\n')).toEqual([
      'shellfleet: No fleet of this machine was running.',
      `shellfleet: Session images stay for the next \`up\`: ${names.join(', ')}. To remove them: docker rmi ${names.join(' ')}, then shellfleet prune --images.`,
    ]);
  });
});
