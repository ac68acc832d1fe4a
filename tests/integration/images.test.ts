import { PassThrough } from 'node:stream';
import { SESSION_IMAGES } from '@shellfleet/policy';
import { checkoutRoot, ensureFullSessionImage, ensureWorkerImage, findDocker } from '@shellfleet/setup';
import Docker from 'dockerode';
import { describe, expect, inject, test } from 'vitest';

async function runIn(
  image: string,
  command: string[],
  env: string[] = [],
  user = '',
): Promise<{ exitCode: number; output: string }> {
  const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
  const stream = new PassThrough();
  let output = '';
  stream.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const options = { Env: env, User: user, Tty: true, HostConfig: { AutoRemove: true, NetworkMode: 'none' } };
  const [{ StatusCode: exitCode }] = (await docker.run(image, command, stream, options)) as [{ StatusCode: number }];
  return { exitCode, output: output.trim() };
}

// CONTRACT: a POSIX shell with bash, coreutils, findutils, sed, grep, awk, procps, util-linux, hostname, tar, gzip,
// python3, node, git
const slim = 'sh bash ls find xargs sed grep awk ps setsid flock hostname tar gzip python3 node git';
const missingOf = (programs: string): string[] => [
  'sh',
  '-c',
  `for program in ${programs}; do command -v "$program" >/dev/null || echo "$program"; done`,
];

describe('images', () => {
  test('`slim` contains every program that sessions are promised', async () => {
    expect(await runIn(inject('sessionImage'), missingOf(slim))).toEqual({ exitCode: 0, output: '' });
  });

  test('`full` contains working tools for an hour of an agent', async () => {
    const engine = await findDocker({ DOCKER_HOST: inject('dockerHost') });
    const machine = {
      engine: { ...engine!, startedHere: false },
      sessionImage: inject('sessionImage'),
      imageNames: SESSION_IMAGES,
    };
    const image = await ensureFullSessionImage(machine, process.env, (line) => console.error(line));
    const more = 'pip python npm npx curl gcc g++ cc make patch jq rg sqlite3 less file zip unzip bzip2 xz ssh';
    expect(await runIn(image, missingOf(`${slim} ${more}`))).toEqual({ exitCode: 0, output: '' });
    const script = [
      'set -e; mkdir -p /tmp/w && cd /tmp/w && export HOME=/tmp/w',
      'printf "int main(void) { return 0; }" > a.c && printf "a: a.c\n\t@gcc -o a a.c\n" > Makefile && make && ./a',
      'python -m venv v && v/bin/pip --version | grep -q "^pip"',
      'mkdir -p p && printf \'{"name":"p","version":"1.0.0"}\' > p/package.json && npm --version | grep -q "^11" && npm pack ./p >/dev/null 2>&1',
      'printf "[project]\nname = \'q\'\nversion = \'1\'\n" > pyproject.toml && pip download --no-index --no-deps none 2>&1 | grep -q "No matching"',
      'echo \'{"n":[1,2]}\' | jq -cM .n; sqlite3 :memory: "select 1+1"; zip -q p.zip a.c && unzip -l p.zip | grep -c a.c; rg -c main a.c',
      'echo hi > f && curl -s file:///tmp/w/f',
    ].join('\n');
    const output = ['[1,2]', '2', '1', '1', 'hi'].join('\r\n');
    expect(await runIn(image, ['sh', '-c', script], [], '1000:1000')).toEqual({ exitCode: 0, output });
  }, 600_000);

  test('test images lack the programs that their names exclude', async () => {
    const { busybox, dashOnly, noShell } = inject('testImages');
    const useCat = ['sh', '-c', 'cat /dev/null'];
    expect((await runIn(busybox, useCat)).exitCode).toBe(0);
    expect((await runIn(dashOnly, useCat)).exitCode).toBe(127);
    expect((await runIn(dashOnly, ['sh', '-c', 'echo "$((1 + 1))"'])).output).toBe('2');
    await expect(runIn(noShell, useCat)).rejects.toThrow('executable file not found');
  });

  test('the worker image contains all modules that the worker imports', async () => {
    const engine = await findDocker({ DOCKER_HOST: inject('dockerHost') });
    const deps = { endpoint: engine!.endpoint, env: process.env, root: checkoutRoot, report: () => {} };
    const image = await ensureWorkerImage(deps, inject('sessionImage'));
    // The worker reads its configuration after all modules are loaded, and refuses it before it connects to anything.
    const refused = await runIn(image, [], ['SHELLFLEET_SLOTS=none']);
    expect(refused).toEqual({ exitCode: 2, output: 'shellfleet: SHELLFLEET_SLOTS must be a number' });
  }, 60_000);
});
