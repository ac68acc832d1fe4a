import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { createDockerSandboxes, type Sandbox, type Sandboxes } from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { keyspaceOf } from '../support/keyspace.ts';

// Sessions of images that declare volumes, which the engine would keep on its own disk.

const MIB = 2 ** 20;
const keeperPath = fileURLToPath(new URL('../fixtures/stands-in-for-the-keeper.sh', import.meta.url));
const socketPath = inject('dockerHost').replace('unix://', '');
const docker = new Docker({ socketPath });
const namespace = keyspaceOf(`test-volumes-${process.pid}`);
const made: string[] = [];
let directory: string;
let sandboxes: Sandboxes;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'volumes-'));
  sandboxes = await createDockerSandboxes({
    namespace,
    hostId: 'one',
    hostKey: Buffer.alloc(32, 7),
    directory: join(directory, 'one'),
    keeperPath,
    transport: 'attach',
    socketPath,
    allowances: {
      images: 'any',
      defaultImage: inject('sessionImage'),
      users: [],
      workspaces: [],
      bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
    },
  });
});
afterAll(async () => {
  await Promise.all((await sandboxes.list()).map(({ sandbox }) => sandbox.remove()));
  await sandboxes.close();
  await Promise.all(made.map((image) => docker.getImage(image).remove({ force: true })));
  await rm(directory, { recursive: true });
});

function create(spec: SessionSpec): Promise<Sandbox> {
  const session = { namespace, tenant: 'acme', session: 's' };
  return sandboxes.create(session, sessionSpecSchema.parse({ limits: { memoryBytes: 64 * MIB }, ...spec }));
}

async function withVolumes(...volumes: string[]): Promise<string> {
  const base = await docker.createContainer({ Image: inject('sessionImage'), Cmd: ['true'] });
  const name = { repo: 'shellfleet-test/volumes', tag: `${process.pid}-${made.length}` };
  const { Id: id } = await base.commit({ ...name, changes: `VOLUME ${JSON.stringify(volumes)}` });
  await base.remove();
  made.push(id);
  return `${name.repo}:${name.tag}`;
}

/** Returns what a line prints in a sandbox. */
async function runIn(sandbox: Sandbox, line: string): Promise<string> {
  if (sandbox.link.type !== 'attach') throw new Error('these tests talk over attach');
  const stream = await sandbox.link.open();
  await sandbox.start();
  let text = '';
  stream.on('data', (data) => {
    text += String(data);
  });
  stream.write(`${line}\n`);
  await expect.poll(() => text).toMatch(/^done \d+$/m);
  return text.replace(/^done \d+\n/m, '');
}

describe('a volume that an image declares', () => {
  // VOLUME-1
  test('becomes a bounded directory of the session, and no volume of the engine', async () => {
    const sandbox = await create({ image: await withVolumes('/data', '/tmp', '/var/lib/own/') });
    const { Mounts: mounts } = await docker.getContainer(String(sandbox.containerId)).inspect();
    expect(mounts.filter(({ Type }) => Type === 'volume')).toEqual([]);
    const own = await runIn(
      sandbox,
      'for f in /data /var/lib/own; do stat -c "%n %u %a" $f; df -k $f | tail -n 1 | tr -s " " | cut -d " " -f 1,2; done; echo here > /tmp/f && cat /tmp/f; (head -c 40000000 /dev/zero > /data/f) 2>/dev/null || stat -c %s /data/f',
    );
    const size = (32 * MIB) / 1024;
    expect(own).toBe(`/data 1000 755\ntmpfs ${size}\n/var/lib/own 1000 755\ntmpfs ${size}\nhere\n${32 * MIB}\n`);
  });

  test('is read-only in the mode `read-only`', async () => {
    const sandbox = await create({ image: await withVolumes('/data'), sandbox: { mode: 'read-only' } });
    expect(await runIn(sandbox, '(echo > /data/f) 2>/dev/null || echo refused; echo here > /tmp/f && cat /tmp/f')).toBe(
      'refused\nhere\n',
    );
  });

  // VOLUME-2
  test.each([
    ['contains files', '/var/lib', /declares the volume \/var\/lib and has files there, which a session would not see/],
    ['is a directory of the system', '/etc/own', /declares the volume \/etc\/own, which is a directory of the system/],
  ])('leads to a refusal of the image if it %s', async (_title, volume, message) => {
    const before = (await sandboxes.list()).length;
    await expect(create({ image: await withVolumes(volume) })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringMatching(message),
      context: { issues: [{ path: 'image', message: expect.any(String) }] },
    });
    expect((await sandboxes.list()).length).toBe(before);
  });
});
