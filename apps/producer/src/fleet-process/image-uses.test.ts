import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeStateDirectory, recordProcess } from '@shellfleet/setup';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { VERSION } from '../program-file.ts';
import { type FleetRecord, replaceFleetRecord } from './fleet-record.ts';
import { forgetImageOwners, readImageOwners } from './image-owners.ts';
import { readImageUses } from './image-uses.ts';
import { ensureOwnImageNames } from './own-image-names.ts';

let users: string;
beforeEach(async () => {
  users = await mkdtemp(join(tmpdir(), 'image-uses-'));
});
afterEach(() => rm(users, { recursive: true }));

const envOf = (name: string) => ({ XDG_STATE_HOME: users, SHELLFLEET_STATE_DIR: join(users, name) });

/** Does what `up` does to a directory before it makes an image. Returns the owner. */
async function nameImages(name: string): Promise<string> {
  const { slim } = await ensureOwnImageNames(envOf(name));
  return slim.slice(slim.lastIndexOf('-') + 1);
}

/** Starts a process with the title of `up`. */
async function startSupervisor() {
  const script = 'process.title = "shellfleet-up"; process.stdout.write("on"); setInterval(() => {}, 1000)';
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  const ended = once(child, 'exit');
  const end = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  return { supervisor: recordProcess(child.pid ?? 0), end, [Symbol.asyncDispose]: end };
}

describe('the use of images', () => {
  test('keeps the version of the last up of a directory, and no older one', async () => {
    const owner = await nameImages('a');
    const { whyUsed, isMaking } = await readImageUses(envOf('elsewhere'));
    expect([whyUsed(VERSION, owner), whyUsed('0.0.1', owner), isMaking]).toEqual([
      `the next \`up\` in ${join(users, 'a')} uses it`,
      undefined,
      false,
    ]);
  });

  test('keeps the version of a running up, which may be making its image', async () => {
    const owner = await nameImages('a');
    await using up = await startSupervisor();
    const record: FleetRecord = {
      state: 'up',
      supervisor: up.supervisor,
      workers: [],
      version: '0.0.1',
      build: '0.0.1',
      startedAt: new Date().toISOString(),
      startedEngine: false,
    };
    replaceFleetRecord(record, envOf('a'));
    const running = await readImageUses(envOf('elsewhere'));
    expect([running.whyUsed('0.0.1', owner), running.whyUsed('0.0.0', owner), running.isMaking]).toEqual([
      `the \`up\` that runs in ${join(users, 'a')} uses it`,
      undefined,
      true,
    ]);
    await up.end();
    const ended = await readImageUses(envOf('elsewhere'));
    expect([ended.whyUsed('0.0.1', owner), ended.isMaking]).toEqual([undefined, false]);
  });

  test('keeps no image of a missing directory, and forgets the directory after its last image', async () => {
    const owner = await nameImages('a');
    await rm(await makeStateDirectory(envOf('a')), { recursive: true });
    const env = envOf('elsewhere');
    expect((await readImageUses(env)).whyUsed(VERSION, owner)).toBe(undefined);
    await forgetImageOwners([`shellfleet/session:slim-${VERSION}-${owner}`], env);
    expect(await readImageOwners(env)).toEqual([{ owner, directory: join(users, 'a'), version: VERSION }]);
    await forgetImageOwners([], env);
    expect(await readImageOwners(env)).toEqual([]);
  });

  test('keeps all images of an owner that no directory of this user has', async () => {
    await nameImages('a');
    const { whyUsed } = await readImageUses(envOf('elsewhere'));
    expect(whyUsed('0.0.1', 'ffffffff')).toMatch(
      /^no state directory of this user is known to have the owner ffffffff/,
    );
  });

  test('names the images of an up that cannot record anything for the user', async () => {
    const blocked = join(users, 'a-file');
    await writeFile(blocked, '');
    const env = { ...envOf('a'), XDG_STATE_HOME: blocked };
    const { slim } = await ensureOwnImageNames(env);
    expect(slim).toMatch(/^shellfleet\/session:slim-.+-[0-9a-f]{8}$/);
    expect(await readImageOwners(env)).toEqual([]);
  });
});
