import { execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { follow } from '../support/run-cli.ts';
import { until } from '../support/until.ts';

// Runs the completion scripts in their shells. `npm test` installs zsh and fish where it can; elsewhere their tests
// fail.

const run = promisify(execFile);
let stage: ClientStage;
let directory: string;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  stage = await setClientStage();
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-completion-'));
  const program = join(directory, 'shellfleet');
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' --no-warnings '${inject('programs').cli}' "$@"\n`);
  await chmod(program, 0o755);
  await writeFile(join(directory, 'local-file.txt'), '');
  env = {
    ...{ PATH: `${directory}:${process.env.PATH}`, HOME: directory, TERM: 'xterm', LANG: 'C.UTF-8' },
    ...{
      SHELLFLEET_REDIS_URL: stage.own.url,
      SHELLFLEET_NAMESPACE: stage.namespace,
      SHELLFLEET_SEAL_KEY: stage.sealKey,
    },
    ...{ SHELLFLEET_STATE_DIR: '/nonexistent', NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
  };
  const fleet = await stage.connect();
  for (const id of ['build-1', 'other']) await fleet.session(id);
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Typed texts, and the last word of the line after Tab. */
const completed: [string, string][] = [
  ['shellfleet resta', 'restart '],
  ['shellfleet exec --idle', '--idle-timeout '],
  ['shellfleet ps --state unr', 'unreachable '],
  ['shellfleet close other buil', 'build-1 '],
  ['shellfleet cp ./local', './local-file.txt '],
  ['shellfleet cp ./local-file.txt buil', 'build-1:'],
];

describe('`shellfleet completion`', () => {
  test.each([
    ['bash', ['--norc', '--noprofile', '-i'], 'source <(shellfleet completion bash)'],
    ['zsh', ['-f', '-i'], 'autoload -U compinit && compinit -u -D && source <(shellfleet completion zsh)'],
  ])('completes verbs, flags, values, sessions and files in %s', async (shell, args, load) => {
    const words = [shell, ...args].join(' ');
    const child = spawn('script', ['-qefc', words, '/dev/null'], {
      env,
      cwd: directory,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const { output, end } = follow(child);
    const lines = () =>
      output()
        .stdout.toString()
        .split(/[\r\n]+/);
    // zsh removes the space after a word again if something else than a word follows.
    const untilShown = (line: string) =>
      until(lines, (all) => all.includes(line) || all.includes(line.replace(' ]', ']')));
    child.stdin.write(`${load}; echo lo""aded\n`);
    await untilShown('loaded');
    for (const [typed, word] of completed) {
      // Ctrl-A and Ctrl-E enclose the line in a command that prints it.
      child.stdin.write(`${typed}\t\u0001echo '[\u0005]'\n`);
      await untilShown(`[${typed.slice(0, typed.lastIndexOf(' ') + 1)}${word}]`);
    }
    child.stdin.write('exit\n');
    await end;
  });

  test('completes verbs, flags, values, sessions and files in fish', async () => {
    const queries = completed.map(([typed]) => `complete -C '${typed}' | head -n 1`);
    const script = ['shellfleet completion fish | source', ...queries].join('; ');
    const { stdout } = await run('fish', ['--no-config', '-c', script], { env, cwd: directory });
    const words = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t')[0]);
    expect(words).toEqual(completed.map(([, word]) => word.trim()));
  });

  test('completes verbs and flags without a fleet, and prints nothing to stderr', async () => {
    const complete = async (...words: string[]) =>
      run(join(directory, 'shellfleet'), ['__complete', '--', ...words], {
        env: { ...env, SHELLFLEET_REDIS_URL: 'redis://127.0.0.1:1' },
      });
    expect(await complete('clos')).toEqual({
      stdout: 'close\tend sessions, their commands and their sandboxes\n',
      stderr: '',
    });
    expect(await complete('close', '')).toEqual({ stdout: '', stderr: '' });
  });
});
