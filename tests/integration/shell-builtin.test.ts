// The builtin with which bash takes its commands, and the output pipes that it keeps. Scripts may do to it what they
// like: the session goes on, in the builtin or in the loop.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { COMPILERS } from '@shellfleet/keeper/build';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { openBox, type ShellBox, useBox } from '../support/shell-box.ts';

/** Compiles a builtin that has the name of ours and does nothing. Resolves with the library's bytes in base64. */
async function compileOther(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'builtin-'));
  const source = join(directory, 'other.c');
  await writeFile(
    source,
    `static int other(void *list) { return list == 0; }
     static const char *const text[] = {"other", 0};
     struct { const char *name; int (*f)(void *); int flags; const char *const *text; const char *s; char *h; }
       __sf_step_struct = {"__sf_step", other, 1, text, "other", 0};`,
  );
  const compiler = COMPILERS[0] ?? 'cc';
  await promisify(execFile)(compiler, ['-shared', '-fPIC', '-nostdlib', '-o', join(directory, 'other.so'), source]);
  const bytes = await readFile(join(directory, 'other.so'));
  await rm(directory, { recursive: true });
  return bytes.toString('base64');
}

/** Runs commands until they keep the pipes, for which the keeper's directory must not have changed lately. */
async function keepPipes({ client }: ShellBox): Promise<void> {
  await delay(100);
  for (let i = 0; i < 3; i++) await client.run(':');
}

describe('the builtin', () => {
  const it = useBox();
  const run = (script: string, options = {}) => it.client.run(script, options);

  test('takes the commands of bash, and not those of a session that keeps the loop', async () => {
    expect((await run('echo a')).end).toMatchObject({ way: 'builtin', shell: { state: 'kept' } });
    await using loop = await openBox({ env: { SF_LOOP: '1' } });
    expect((await loop.client.run('env | grep SF_')).end).toMatchObject({ way: 'loop', exitCode: 1 });
    await using dash = await openBox({ image: 'dashOnly' });
    expect((await dash.client.run(':')).end).toMatchObject({ way: 'loop', exitCode: 0 });
  });

  test('is left out for a bash that dies of it', async () => {
    const bash = '[ ! -e /proc/self/fd/245 ] || kill -SEGV $$; exec bash "$@"';
    await using fragile = await openBox({ shell: ['/bin/bash', '-c', bash, 'bash'] });
    const ran = await fragile.client.run('echo ok');
    expect(ran).toMatchObject({ out: 'ok\n', end: { way: 'loop', shell: { shellNumber: 2 } } });
    expect(await fragile.client.run('echo ok')).toMatchObject({ out: 'ok\n', state: 'kept' });
  });

  test.each([
    ['is deleted', 'enable -d __sf_step'],
    ['is disabled', 'enable -n __sf_step'],
    ['has become a function', '__sf_step() { echo F; return 0; }'],
    ['is called by a script', '__sf_step 0'],
    ['is called by a subshell', '(__sf_step 0)'],
    ['is called as if no command ran', '__sf_busy=; __sf_step 0'],
    ['is called with nothing', '__sf_step'],
    ['is looked for in another directory', 'BASH_LOADABLES_PATH=/tmp; enable -f __sf_step __sf_step; true'],
    ['has lost its descriptors', 'for fd in {3..300}; do eval "exec $fd>&-"; done'],
    ['finds other files at its descriptors', 'for fd in {246..250}; do eval "exec $fd>/tmp/other"; done'],
    ['finds all standard streams closed', 'exec 0<&- 1>&- 2>&-'],
    ['works in a traced shell', 'set -x; trap ":" DEBUG; shopt -s extdebug'],
    ['works in POSIX mode', 'set -o posix'],
    ['works with positional parameters', 'set -- a b c'],
    ['works after break, continue and return', 'while :; do break 9; done; continue 5; return 3'],
    ['works after an error in an expansion', 'echo ${V!?}'],
    ['works after a nameref and a local of its variables', 'f() { local __sf_busy=x __sf_token=y; }; f'],
    ['works with variables that are read-only', 'declare -r __sf_busy __sf_token'],
    ['works with variables that are numbers', 'declare -i __sf_busy __sf_token'],
    ['works with variables that refer to others', 'unset -v __sf_busy; declare -n __sf_busy="A[1/0]"'],
    ['works with variables of capital letters', 'declare -u __sf_busy __sf_token'],
    ['has few descriptors', 'ulimit -Sn 12'],
  ])('goes on when it %s', async (_, script) => {
    await it.client.restart();
    await run('V=1');
    await run(script, { timeoutMs: 2_000 });
    await run('trap - DEBUG; shopt -u extdebug; set +x'); // no more than it takes to see what follows
    expect(await run('echo "$V$#"; echo err >&2')).toMatchObject({ out: /^1[03]\n$/, err: 'err\n', code: 0 });
    expect(await run('exit 5')).toMatchObject({ code: 5, state: 'kept' });
    expect(await run('echo "$V"')).toMatchObject({ out: '1\n', code: 0 });
  });

  test.each([
    ['variables are removed', 'unset -v __sf_dir __sf_script __sf_fd __sf_rc __sf_library __sf_token'],
    ['directory is moved by a restricted shell', 'set -r'],
    ['builtins and functions are replaced', 'enable -n command printf read; command() { false; }; exec() { false; }'],
  ])('runs ordinary commands when its %s', async (_, script) => {
    await it.client.restart();
    await run(`V=1; ${script}`);
    for (let i = 0; i < 3; i++) expect(await run('echo "$V"')).toMatchObject({ out: '1\n', state: 'kept' });
  });

  test.each([
    ['the builtin', {}],
    ['the loop', { SF_LOOP: '1' }],
  ])('%s replaces a shell whose DEBUG trap skips every command, and the Result reports that', async (_, env) => {
    await using skipping = await openBox({ env });
    const { client } = skipping;
    const ran = await client.run('V=1; shopt -s extdebug; trap "false" DEBUG', { timeoutMs: 2_000 });
    expect(ran.state).toBe('lost');
    expect(await client.run('echo "$V"')).toMatchObject({ out: '\n', state: 'kept' });
  });

  test.each([
    ['the builtin', {}],
    ['the loop', { SF_LOOP: '1' }],
  ])('%s replaces a shell that has no descriptor left, and the Result reports that', async (_, env) => {
    await using full = await openBox({ env });
    await keepPipes(full);
    const filled = await full.client.run('V=1; ulimit -n 20; for fd in {3..19}; do eval "exec $fd</dev/null"; done');
    expect(filled.state).toBe('lost');
    expect(await full.client.run('echo "$V"')).toMatchObject({ out: '\n', state: 'kept' });
  });

  test('is not looked for in the output of a command after it was deleted', async () => {
    await it.client.restart();
    await run('command_not_found_handle() { echo "unknown $1"; }; enable -d __sf_step');
    for (const script of ['echo a', 'echo a; exit 5']) expect((await run(script, { cwd: '/' })).out).toBe('a\n');
  });

  test('goes on when another builtin takes its name', async () => {
    await it.client.restart();
    await run(`V=1; base64 -d >/tmp/other.so <<<${await compileOther()}`);
    await run('enable -f /tmp/other.so __sf_step; set -x');
    await run('set +x');
    for (let i = 0; i < 3; i++) expect(await run('echo "$V"')).toMatchObject({ out: '1\n', state: 'kept' });
  });

  test('ends with a program in its place', async () => {
    await it.client.restart();
    expect(await run('exec sh -c "echo other; exit 4"')).toMatchObject({ out: 'other\n', code: 4, state: 'lost' });
    expect((await run('echo ok')).end).toMatchObject({ way: 'builtin', shell: { state: 'kept' } });
  });

  test('ends no command because of a stop of the one before', async () => {
    for (let i = 0; i < 150; i++) {
      const entryId = ulid();
      const running = run(`for ((i = 0; i < ${(i % 30) * 100}; i++)); do :; done; echo a`, { entryId });
      if (i % 3) await new Promise((resolve) => setImmediate(resolve));
      it.client.shell.stop(entryId, { killGraceMs: 1_000 });
      const { end } = await running;
      expect(['cancelled', 'exited']).toContain(end.reason);
      expect(await run('echo b')).toMatchObject({ out: 'b\n', code: 0, end: { reason: 'exited' } });
    }
  });
});

describe('kept output pipes', () => {
  const it = useBox();
  const run = (script: string) => it.client.run(script);

  test('have no output of a background process in that of the next command', async () => {
    for (let i = 0; i < 3; i++) expect((await run(`echo ${i}`)).out).toBe(`${i}\n`);
    const parent = await run('(read -t 0.3 _ <><(:); echo late; echo late2 >&2) & echo now');
    expect(parent.out).toBe('now\n');
    for (let i = 0; i < 20; i++) expect(await run('echo mine')).toMatchObject({ out: 'mine\n', err: '' });
    await expect.poll(() => it.client.late.map(({ text }) => text).sort()).toEqual(['late\n', 'late2\n']);
    expect(new Set(it.client.late.map(({ entryId }) => entryId))).toEqual(new Set([parent.entryId]));
  });

  test('announce no late output of processes that come from outside', async () => {
    await run('rm -f /tmp/go; echo a');
    it.client.lateEnds.length = 0;
    const running = run('while [ ! -e /tmp/go ]; do :; done; echo b');
    await it.client.file({ type: 'write', path: '/tmp/go', offset: 0, data: new Uint8Array(1), truncate: true });
    expect((await running).out).toBe('b\n');
    for (let i = 0; i < 3; i++) expect((await run(`echo ${i}`)).out).toBe(`${i}\n`);
    expect(it.client.lateEnds).toEqual([]);
  });

  test('are the next command’s for a descriptor that the shell has copied', async () => {
    await run('exec 7>&1');
    expect(await run('echo copied >&7; echo own')).toMatchObject({ out: 'copied\nown\n' });
    await run('exec 7>&-');
  });

  test('are opened again by a shell that gets back the descriptors of its scripts', async () => {
    await run('V=1');
    for (let i = 0; i < 3; i++) {
      await run('eval exec {3..255}\\>\\&-');
      expect(await run('echo "$V"; echo e >&2')).toMatchObject({ out: '1\n', err: 'e\n', state: 'kept' });
    }
  });

  test('hold the output of a redirected shell for one command only', async () => {
    await run('exec >/tmp/file 2>&1; echo in the file');
    expect(await run('echo out; echo err >&2; cat /tmp/file')).toMatchObject({
      out: 'out\nin the file\n',
      err: 'err\n',
    });
  });

  test('block again for the command after a program that made them non-blocking', async () => {
    await run('dd if=/dev/null oflag=nonblock status=none');
    const text = await run('printf "%01000000d" 0');
    expect(text).toMatchObject({ code: 0, err: '' });
    expect(text.stdout.length).toBe(1_000_000);
  });

  // No fork of these is the last that bash knows, because it hides those of substitutions.
  test.each([
    ['stdout', 'stderr has become non-blocking', 'x=$(dd if=/dev/null oflag=nonblock status=none >&2)', '>&2'],
    ['stderr', 'stdout has become non-blocking', 'exec 7>&1; x=$(dd if=/dev/null oflag=nonblock status=none >&7)', ''],
    ['stdout', 'stderr has become one for reading', 'exec 2</dev/stderr', '>&2'],
    ['stderr', 'stdout has become one for reading', 'exec 1</dev/stdout', ''],
  ] as const)('are opened again, also %s, when %s', async (other, _, script, to) => {
    await keepPipes(it);
    await run(`${script}; exec 7>&-`);
    const { stdout, stderr, code } = await run(`printf "%01000000d" 0 ${to}`);
    expect(code).toBe(0);
    expect(stdout.length + stderr.length).toBe(1_000_000);
    expect({ stdout, stderr }[other].length).toBe(0);
  });

  test('are opened again when stdin can no longer be read', async () => {
    await keepPipes(it);
    await run('exec 0>/dev/null');
    expect(await run('cat')).toMatchObject({ code: 0, out: '', err: '' });
  });

  test('have no late output when a process takes the place of the forwarder', async () => {
    await using limited = await openBox({ env: { SF_EGRESS: '/tmp/proxy' } });
    const { client } = limited;
    await client.run('mkfifo /tmp/never');
    await keepPipes(limited);
    // The first forwarder is replaced at once, and the second 100 ms after it began.
    const killed = 'pkill -9 -x keeper; sleep 0.02; pkill -9 -x keeper';
    const late = '{ read -t 0.03 _ <>/tmp/never; echo late >&2; } >/dev/null &';
    const parent = await client.run(`x=$(${killed}; ${late}); for ((i = 0; i < 1000; i++)); do :; done`);
    expect(parent.err).toBe('');
    while (client.late.length === 0) expect(await client.run('echo mine')).toMatchObject({ out: 'mine\n', err: '' });
    expect(client.late).toMatchObject([{ entryId: parent.entryId, text: 'late\n' }]);
  });

  test('hold megabytes of output without a new process', async () => {
    const all = await run('for ((i = 0; i < 9; i++)); do printf "%01000000d" 0; done');
    expect(all.stdout.length).toBe(9_000_000);
    expect((await run('echo ok')).out).toBe('ok\n');
  });

  test('are made again when their names are removed', async () => {
    await run('rm -f /run/shellfleet/stdout /run/shellfleet/stderr');
    for (let i = 0; i < 3; i++) expect(await run('echo o; echo e >&2')).toMatchObject({ out: 'o\n', err: 'e\n' });
  });

  test('are opened for a line of another process that names pipes which are not kept', async () => {
    await run('V=1; rm -f /tmp/where');
    const line = 'printf \'aaaaaaa%s,\\n\' "${__sf_token#???????}" >/run/shellfleet/go';
    const where = 'readlink /proc/$$/fd/1 >/tmp/part && mv /tmp/part /tmp/where';
    await run(`case $__sf_token in aaaaaaa?) ${where} ;; *) (sleep 0.1; ${line}) & ;; esac`);
    const read = () => it.client.file({ type: 'read', path: '/tmp/where', offset: 0, length: 100 });
    await expect.poll(async () => (await read()).out).toBe('/run/shellfleet/stdout\n');
    expect(await run('echo "$V"')).toMatchObject({ out: '1\n', state: 'kept' });
  });

  // The signals come from outside of the sandbox, from the user that the shell has there. No process is made there, so
  // the pipes count as kept.
  test('are opened again by a shell that a signal has led to its loop', async () => {
    await using fresh = await openBox({ user: `${process.getuid?.()}:${process.getgid?.()}` });
    const { client, box } = fresh;
    await client.run('V=1');
    const keeper = (await box.container.inspect()).State.Pid;
    const shell = Number(await readFile(`/proc/${keeper}/task/${keeper}/children`, 'utf8'));
    for (let i = 0; i < 3; i++) {
      expect((await client.run('echo "$V"')).out).toBe('1\n');
      // Again and again, because the shell may not wait yet. Only the builtin holds that descriptor.
      const interrupt = () => process.kill(shell, 'SIGURG') && readdir(`/proc/${shell}/fd`);
      await expect.poll(interrupt).not.toContain('246');
      const next = await client.run('echo "$V"; echo err >&2', { timeoutMs: 2_000 });
      expect(next).toMatchObject({ out: '1\n', err: 'err\n', state: 'kept' });
    }
  });

  test('are given to a shell that a signal has ended between two commands', async () => {
    await run('V=1; me=$$; rm -f /tmp/killed');
    await run('(sleep 0.1; kill -TERM $me; : >/tmp/killed) & true');
    await expect.poll(async () => (await it.client.file({ type: 'stat', path: '/tmp/killed' })).code).toBe(0);
    expect(await run('echo "$V"')).toMatchObject({ out: '1\n', state: 'partial' });
    expect(await run('echo "$V"')).toMatchObject({ out: '1\n', state: 'kept' });
  });
});
