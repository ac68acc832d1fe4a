import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { type ImageRegistry, PASSWORD, startImageRegistry, USER } from '../support/image-registry.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// A host whose configuration pulls one image in advance, with the login of its user's Docker configuration.

let directory: string;
let registry: ImageRegistry;
let ahead: string;
let asked: string;
let stack: TestFleet;
let cli: FleetCli;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-images-'));
  registry = await startImageRegistry();
  [ahead = '', asked = ''] = await registry.add(2);
  const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  await writeFile(join(directory, 'config.json'), JSON.stringify({ auths: { [registry.address]: { auth } } }));
  await writeFile(join(directory, 'host.yaml'), `images: { prepull: ['${ahead}'] }\n`);
  const env = {
    SHELLFLEET_CONFIG: join(directory, 'host.yaml'),
    DOCKER_CONFIG: directory,
    SHELLFLEET_IMAGES: `${registry.address}/,shellfleet/`,
  };
  stack = await startFleet({ env });
  cli = new FleetCli(stack);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await registry?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const own = async () => (await stack.fleet.hostImages('h1')).filter(({ isPulled }) => isPulled);

describe('images on the command line', () => {
  test('are pulled, listed with the reason why they stay, and pruned', async () => {
    await until(own, (images) => images.length === 1);
    const pulled = await cli.text(['images', 'pull', asked]);
    expect(pulled).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: expect.stringContaining(`h1 has ${asked} (sha256:`),
    });
    const { stdout } = await cli.text(['images', 'ls', '--json']);
    const listed = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    expect(listed).toContainEqual(
      expect.objectContaining({ host: 'h1', image: ahead, pinned: true, isPulled: true, inUse: false }),
    );
    const table = (await cli.text(['images', 'ls'])).stdout;
    expect(table).toMatch(/^HOST +IMAGE +DIGEST +SIZE +LAST USED +STAYS BECAUSE$/m);
    expect(table).toMatch(new RegExp(`^h1 +${ahead} .* pinned$`, 'm'));
    expect(table).toMatch(/shellfleet\/session:.* not pulled by the host$/m);
    const pruned = await cli.text(['images', 'prune']);
    expect(pruned.stdout).toContain(asked);
    expect(pruned.stderr).toMatch(/h1: 1 image of .* was removed\./);
    expect((await own()).map(({ image }) => image)).toEqual([ahead]);
  });

  test('that sessions may not name are not pulled', async () => {
    const { exitCode, stderr } = await cli.text(['images', 'pull', 'elsewhere.example/image:1']);
    expect(exitCode).toBe(125);
    expect(stderr).toContain('Its operator lists images in SHELLFLEET_IMAGES');
  });

  test('are pulled although another one cannot be', async () => {
    const bad = ['no such name', 'elsewhere.example/image:1'];
    const { exitCode, stdout, stderr } = await cli.text(['images', 'pull', '--json', ...bad, asked]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('h1: The name of the image is not valid: is not an image name');
    expect(stderr).toContain('h1: This host does not let sessions name the image elsewhere.example/image:1');
    const lines = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    expect(lines).toHaveLength(3);
    expect(lines).toContainEqual({ host: 'h1', image: asked, digest: expect.stringMatching(/^sha256:/) });
    expect(lines).toContainEqual(expect.objectContaining({ type: 'error', host: 'h1', code: 'IMAGE_UNAVAILABLE' }));
  });

  test('of a host that the fleet lacks are refused as wrong usage', async () => {
    expect(await cli.text(['images', 'ls', '--host', 'h9'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('This fleet has no host "h9"'),
    });
  });
});
