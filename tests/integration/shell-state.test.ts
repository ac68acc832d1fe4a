// What a persistent shell keeps between commands, in every shell that an image may have.
import { describe, expect, test } from 'vitest';
import { type BoxOptions, host, openBox, useBox } from '../support/shell-box.ts';

const shells: [string, BoxOptions][] = [
  ['bash', { image: 'session' }],
  ...host.map((transport): [string, BoxOptions] => ['bash on the host', { transport }]),
  ['dash', { image: 'dashOnly' }],
  ['busybox ash', { image: 'busybox' }],
];

describe.each(shells)('the state of %s', (name, options) => {
  const it = useBox(options);
  const run: typeof it.client.run = (...args) => it.client.run(...args);
  const bash = name.startsWith('bash');

  test('keeps directory, variables, functions and exports', async () => {
    await run('cd /dev; export A=1; B="two words"; f() { echo fn $1; }');
    const { out } = await run('pwd; echo $A $B; f x; (echo sub $A)');
    expect(out).toBe('/dev\n1 two words\nfn x\nsub 1\n');
  });

  test('keeps $? from one command to the next', async () => {
    await run('(exit 7)');
    expect((await run('echo $?')).out).toBe('7\n');
    expect((await run('echo $?')).out).toBe('0\n');
  });

  test('keeps positional parameters, even after a re-execution', async () => {
    await run('set -- one "two  three" "it\'s"');
    expect((await run('echo $#; echo "$2|$3"')).out).toBe("3\ntwo  three|it's\n");
    await run('exit 1');
    expect((await run('echo $#; echo "$2|$3"; set --')).out).toBe("3\ntwo  three|it's\n");
  });

  test('keeps options, even after a command that `set -e` has ended', async () => {
    await run('E=7');
    expect(await run('set -e; false; echo no')).toMatchObject({ code: 1, out: '' });
    expect(await run('case $- in *e*) echo on;; esac; echo $E; false; echo no')).toMatchObject({
      code: 1,
      out: 'on\n7\n',
    });
    expect((await run('set +e; false; echo ok')).out).toBe('ok\n');
  });

  // S1-19
  test.each([
    ['exit 3', 3],
    ['echo a; exit 4; echo b', 4],
    ['set -u; echo $nosuch; echo b', undefined],
    ['echo ${nosuch:?bad}; echo b', undefined],
  ])('keeps directory and variables after %s', async (script, code) => {
    await run('cd /dev; X="kept $HOME"; export Y=exported');
    const ended = await run(script);
    if (code !== undefined) expect(ended.code).toBe(code);
    expect(ended.code).not.toBe(0);
    expect(ended.out).not.toContain('b\n');
    expect(ended.end.shell.shellNumber).toBe(1);
    // dash and ash come back from an expansion error without re-executing themselves.
    expect(ended.state).toBe(bash || code === undefined ? 'kept' : 'partial');
    expect((await run('set +u; pwd; echo "$X"; echo $Y')).out).toMatch(/^\/dev\nkept .*\nexported\n$/);
  });

  test('is reported where a re-execution cannot keep it', async () => {
    await run('f() { echo fn; }');
    const { end } = await run('exit 0');
    if (bash) {
      expect(end.shell).toEqual({ state: 'kept', shellNumber: 1 });
      expect((await run('f')).out).toBe('fn\n');
    } else {
      expect(end.shell).toEqual({ state: 'partial', shellNumber: 1, reason: expect.stringContaining('functions') });
    }
  });

  test('is restored after a command with its own env and cwd', async () => {
    await run('cd /dev; unset NEW; PLAIN=p; export EXPORTED=e');
    const env = { NEW: 'n', PLAIN: 'it\'s $x `y` "z"\nline', EXPORTED: 'other' };
    const inside = await run('pwd; printf "%s|" "$NEW" "$PLAIN" "$EXPORTED"; (printf "%s" "$NEW")', {
      env,
      cwd: '/proc',
    });
    expect(inside.out).toBe('/proc\nn|it\'s $x `y` "z"\nline|other|n');
    const after = await run('pwd; printf "%s|" "${NEW-unset}" "$PLAIN" "$EXPORTED"; export -p | grep -c " PLAIN" || :');
    if (name === 'dash') expect(after.out).toBe('/dev\nunset|p|e|');
    else expect(after.out).toBe('/dev\nunset|p|e|0\n');
  });

  test('is restored after a command with its own env and cwd exits the shell', async () => {
    await run('cd /dev; unset NEW');
    expect(await run('cd /sys; exit 5', { env: { NEW: 'n' }, cwd: '/proc' })).toMatchObject({ code: 5 });
    expect((await run('pwd; echo ${NEW-unset}')).out).toBe('/dev\nunset\n');
  });

  test('stays the same if the directory of a command does not exist', async () => {
    await run('cd /dev');
    const missing = await run('echo ran', { cwd: '/no/such/place' });
    expect(missing).toMatchObject({ out: '', code: null, end: { reason: 'cwd', shell: { state: 'kept' } } });
    expect((await run('pwd')).out).toBe('/dev\n');
  });

  // S1-18
  test.each(['echo "abc', 'if true; then', '(', 'echo $(', "echo 'a\nb"])(
    'survives the syntax error in %j, which ends the command immediately',
    async (script) => {
      const ended = await run(script);
      expect(ended.code).not.toBe(0);
      expect(ended.ms).toBeLessThan(1_500);
      expect(ended.end.shell.shellNumber).toBe(1);
      expect((await run('echo ok')).out).toBe('ok\n');
    },
  );

  test.each(['break', 'continue', 'return 3', 'echo a \\', ': # comment', 'echo 1\r\n'])(
    'survives %j, which ends the command but not the session',
    async (script) => {
      expect((await run(script)).ms).toBeLessThan(1_500);
      expect((await run('echo ok')).out).toBe('ok\n');
    },
  );

  test('survives a command that closes descriptors or takes those of the session', async () => {
    await run('exec 0<&- 1>&- 2>&- 3>&- 8>&- 9>&-');
    expect((await run('echo alive')).out).toBe('alive\n');
    await run('exec 5>/dev/null 8>/dev/null 9>/dev/null');
    expect((await run('echo alive; echo gone >&5')).out).toBe('alive\n');
    await run('exec >/dev/null; echo hidden');
    expect((await run('echo seen')).out).toBe('seen\n');
  });

  test('survives changes of IFS, PATH and options, and functions with reserved names', async () => {
    await run('OLD=$PATH; IFS=:; PATH=/none; set -Cf; PS1=x; PROMPT_COMMAND="echo BAD"');
    expect((await run('echo *')).out).toBe('*\n');
    await run('printf() { echo FAKE; }; read() { echo FAKE; }; test() { echo FAKE; }; cd() { echo FAKE; }');
    expect((await run('echo ok', { cwd: '/proc' })).out).toBe('ok\n');
    await run('unset -f printf read test cd; unset IFS; PATH=$OLD; set +Cf');
    expect((await run('printf %s fine')).out).toBe('fine');
  });

  // S1-57
  test("includes the user's trace, without lines of the keeper", async () => {
    expect(await run('set -x')).toMatchObject({ err: '' });
    expect((await run('echo t')).err).toMatch(/^(\+|\+{3}) echo t\n$/);
    expect((await run('exit 0')).err).toMatch(/^(\+|\+{3}) exit 0\n$/);
    expect((await run('set +x')).err).toMatch(/^(\+|\+{3}) set \+x\n$/);
    expect((await run('echo u')).err).toBe('');
  });

  // S1-10
  test("includes the user's traps, and an EXIT trap runs at a restart", async () => {
    await run("trap 'echo usr1' USR1; trap 'echo bye' EXIT");
    const before = await run('kill -USR1 $$');
    expect(before.out).toBe('usr1\n');
    const restarted = await it.client.restart();
    expect(restarted).toMatchObject({
      out: 'bye\n',
      code: 0,
      end: { reason: 'exited', shell: { state: 'lost', shellNumber: before.end.shell.shellNumber + 1 } },
    });
    expect((await run('echo ${X-fresh}')).out).toBe('fresh\n');
  });

  // Invariant 5
  test.each(['kill -9 $$', 'exec true', 'exec sh -c "exit 9"'].slice(0, bash ? 3 : 1))(
    'is reported as lost after %s',
    async (script) => {
      await run('V=1');
      const { shellNumber } = (await run('echo $V')).end.shell;
      const ended = await run(script);
      expect(ended.end.shell).toEqual({ state: 'lost', shellNumber: shellNumber + 1, reason: expect.any(String) });
      expect(ended.code).toBe(script.includes('9 $$') ? 137 : script.includes('9') ? 9 : 0);
      expect((await run('echo "[$V]"')).out).toBe('[]\n');
    },
  );

  test('survives a command of a megabyte, which the shell reads within 200 ms', async () => {
    const took: number[] = [];
    for (let i = 0; i < 5; i++) {
      const ended = await run(`: ${'x'.repeat(1 << 20)}\necho big`);
      expect(ended.out).toBe('big\n');
      took.push(ended.ms);
    }
    expect(Math.min(...took)).toBeLessThan(200);
    expect(Math.max(...took)).toBeLessThan(1_000);
  });
});

describe('the state of bash', () => {
  const it = useBox();

  test('keeps arrays, attributes, aliases, options and exported functions after a re-execution', async () => {
    await it.client.run(
      'shopt -s expand_aliases extglob; alias ll="echo aliased"; declare -A m=([a]=1 [b]="x y"); arr=(1 "2 3")',
    );
    await it.client.run(
      'declare -i n=4; declare -r ro=const; g() { echo exported; }; export -f g; set -o pipefail; umask 027; exit 1',
    );
    const { out } = await it.client.run(
      'll; echo "${m[b]}|${arr[1]}|$ro"; n=n+1; echo $n; bash -c g; false | true || echo pipefail; umask',
    );
    expect(out).toBe('aliased\nx y|2 3|const\n5\nexported\npipefail\n0027\n');
  });

  test('keeps variables that are too large for the start of a process', async () => {
    await it.client.run('V=$(head -c 300000 /dev/zero | tr "\\0" v); export V; exit 2');
    expect((await it.client.run('echo ${#V}; unset V')).out).toBe('300000\n');
  });

  test('lists a background process that has no name', async () => {
    const before = await it.client.shell.background();
    const { out } = await it.client.run("mkfifo none; (exec -a '' cat <>none) & echo $!");
    const named = { pid: Number(out), command: '' };
    await expect.poll(() => it.client.shell.background()).toEqual([...before, named]);
    expect(await it.client.run(`kill ${named.pid}; rm none`)).toMatchObject({ code: 0 });
  });

  test("lists the first 511 bytes of a background process's command line", async () => {
    const before = await it.client.shell.background();
    const { out } = await it.client.run('(exec -a "$(printf %0600d 0)" sleep 300) & echo $!');
    const cut = { pid: Number(out), command: '0'.repeat(511) };
    await expect.poll(() => it.client.shell.background()).toEqual([...before, cut]);
    expect(await it.client.run(`kill ${cut.pid}`)).toMatchObject({ code: 0 });
  });

  test('is reported as partial when the job table is gone', async () => {
    // A process that was just forked still has the name of the shell.
    await it.client.run('sleep 60 >/dev/null 2>&1 & until pgrep -x sleep >/dev/null; do :; done');
    expect((await it.client.run('exit 0')).end.shell).toMatchObject({
      state: 'partial',
      reason: expect.stringContaining('jobs'),
    });
    expect((await it.client.run('pkill -x sleep')).code).toBe(0);
  });
});

describe('the choice of the shell', () => {
  test('fails with the paths that were tried in an image without a shell', async () => {
    await using open = await openBox({ image: 'noShell' });
    expect(open.client.shell.hello).toMatchObject({ state: 'no-shell', problem: expect.stringContaining('/bin/sh') });
    await expect(open.client.run('true')).rejects.toThrow('refused: no-shell');
  });

  // S1-34
  test("follows the session's spec, and reports why a shell cannot start", async () => {
    await using dash = await openBox({ shell: ['/bin/dash', '-u'] });
    expect((await dash.client.run('echo $0 ${BASH_VERSION-none}; case $- in *u*) echo u;; esac')).out).toBe(
      'dash none\nu\n',
    );
    await using missing = await openBox({ shell: ['/no/such/shell'] });
    expect(missing.client.shell.hello).toMatchObject({
      state: 'no-shell',
      problem: expect.stringContaining('/no/such/shell'),
    });
  });

  test('gives up after three starts of a shell that ends early', async () => {
    await using ending = await openBox({ shell: ['/bin/sh', '-c', 'echo started >>/tmp/starts; exit 9'] });
    const starts = async () =>
      (await ending.client.file({ type: 'read', path: '/tmp/starts', offset: 0, length: 1_000 })).out;
    await expect.poll(starts, { timeout: 10_000 }).toBe('started\n'.repeat(3));
    for (let look = 0; look < 3; look += 1) expect(await starts()).toBe('started\n'.repeat(3));
    await expect(ending.client.run('true')).rejects.toThrow('refused: no-shell');
  });
});

// The image of dash has no programs.
describe.each(shells.filter(([name]) => name !== 'dash'))('the directory of %s', (_name, options) => {
  const it = useBox(options);
  const at = (path?: string) => it.client.shell.directory(path === undefined ? {} : { path });

  // fault 103
  test('is read from the kernel and not from the shell', async () => {
    const directory = (await it.client.run('D=$(mktemp -d); cd -P "$D"; pwd -P')).out.trim();
    await it.client.run('mkdir real gone; ln -s real link; ln -s nowhere broken');
    await it.client.run('cd link; PWD=/; cd() { :; }; alias pwd="echo /"');
    const told = [await at(), await at('../link'), await at('/'), await at('../broken'), await at('\0')];
    expect(told).toEqual([`${directory}/real`, `${directory}/real`, '/', undefined, undefined]);
    await it.client.run('unset -f cd; cd "$D/gone"; rmdir "$D/gone"');
    expect(await at()).toBeUndefined();
  });
});
