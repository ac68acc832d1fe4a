import type { Session } from '@shellfleet/client';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// An image name can get new content, for example when another fleet or version on the engine moves the tag.

const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
const repo = `digest-test-${process.pid}`;
const NAME = `${repo}:latest`;

let stack: TestFleet;
let first: string;
let second: string;
beforeAll(async () => {
  stack = await startFleet({ slots: 4 });
  first = await digestOf(inject('sessionImage'));
  second = await digestOf(inject('testImages').busybox);
  await nameIs(first);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await docker.getImage(NAME).remove();
});

const digestOf = async (image: string) => (await docker.getImage(image).inspect()).Id;
const nameIs = (digest: string) => docker.getImage(digest).tag({ repo, tag: 'latest' });

async function containerOf(session: Session) {
  const filters = { label: [`shellfleet.namespace=${stack.namespace}`, `shellfleet.session=${session.id}`] };
  const [found] = await docker.listContainers({ all: true, filters });
  return found;
}

describe('a session whose image name has new content', () => {
  test('keeps the digest of its first container over a lost container, restart and new worker', async () => {
    const session = await stack.fleet.session('kept', { image: NAME });
    const { imageDigest } = await session.run('echo one');
    const opened: unknown[] = [];
    for await (const { type, data } of session.events()) {
      if (type !== 'session.opened') continue;
      opened.push(data);
      break;
    }
    expect([imageDigest, opened]).toEqual([first, [{ hostId: 'h1', epoch: 1, image: NAME, imageDigest: first }]]);

    await nameIs(second);
    await docker.getContainer((await containerOf(session))?.Id ?? '').remove({ force: true });
    expect(await session.run('echo two')).toMatchObject({ stdout: 'two\n', imageDigest: first });
    await session.restart();
    await stack.workers[0]?.stop('SIGTERM');
    await docker.getContainer((await containerOf(session))?.Id ?? '').remove({ force: true });
    await stack.workers[0]?.start();
    expect(await session.run('echo three')).toMatchObject({ stdout: 'three\n', imageDigest: first });
    expect(await session.info()).toMatchObject({ image: NAME, imageDigest: first });
    expect((await containerOf(session))?.ImageID).toBe(first);
  });

  test('keeps the old content; later sessions, also of its id, get the new content', async () => {
    const other = await stack.fleet.session('other', { image: NAME });
    expect(await other.run('true')).toMatchObject({ outcome: 'success', imageDigest: second });
    const kept = await stack.fleet.session('kept', { image: NAME });
    await kept.close();
    const again = await stack.fleet.session('kept', { image: NAME });
    expect(await again.info()).not.toHaveProperty('imageDigest');
    expect(await again.run('true')).toMatchObject({ outcome: 'success', imageDigest: second });
  });
});
