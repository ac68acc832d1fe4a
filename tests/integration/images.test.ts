import { PassThrough } from 'node:stream';
import { checkoutRoot, ensureWorkerImage, findDocker } from '@shellfleet/setup';
import Docker from 'dockerode';
import { expect, inject, test } from 'vitest';

async function runIn(
  image: string,
  command: string[],
  env: string[] = [],
): Promise<{ exitCode: number; output: string }> {
  const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
  const stream = new PassThrough();
  let output = '';
  stream.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const options = { Env: env, Tty: true, HostConfig: { AutoRemove: true, NetworkMode: 'none' } };
  const [{ StatusCode: exitCode }] = (await docker.run(image, command, stream, options)) as [{ StatusCode: number }];
  return { exitCode, output: output.trim() };
}

test('the default session image has every program that sessions may count on', async () => {
  // CONTRACT: a POSIX shell with bash, coreutils, findutils, sed, grep, awk, procps, util-linux, hostname, tar, gzip, python3, node, git
  const programs = 'sh bash ls find xargs sed grep awk ps setsid flock hostname tar gzip python3 node git';
  const script = `for program in ${programs}; do command -v "$program" >/dev/null || echo "$program"; done`;
  expect(await runIn(inject('sessionImage'), ['sh', '-c', script])).toEqual({ exitCode: 0, output: '' });
});

test('the test images lack what they are named for', async () => {
  const { busybox, dashOnly, noShell } = inject('testImages');
  const useCat = ['sh', '-c', 'cat /dev/null'];
  expect((await runIn(busybox, useCat)).exitCode).toBe(0);
  expect((await runIn(dashOnly, useCat)).exitCode).toBe(127);
  expect((await runIn(dashOnly, ['sh', '-c', 'echo "$((1 + 1))"'])).output).toBe('2');
  await expect(runIn(noShell, useCat)).rejects.toThrow('executable file not found');
});

test('the worker image holds all that the worker imports', async () => {
  const engine = await findDocker({ DOCKER_HOST: inject('dockerHost') });
  const deps = { endpoint: engine!.endpoint, env: process.env, root: checkoutRoot, report: () => {} };
  const image = await ensureWorkerImage(deps, inject('sessionImage'));
  // Its configuration is read after everything is loaded, and refused before anything is reached.
  const refused = await runIn(image, [], ['SHELLFLEET_SLOTS=none']);
  expect(refused).toEqual({ exitCode: 2, output: 'SHELLFLEET_SLOTS must be a number' });
}, 60_000);
