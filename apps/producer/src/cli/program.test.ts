import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { readCliConfig } from '../config.ts';
import { toRunOptions } from './command-flags.ts';
import { EXAMPLES } from './examples.ts';
import { leafVerbs } from './help.ts';
import { createProgram } from './program.ts';
import { endOptionsAtScript, toScript } from './script-words.ts';
import { toSpec } from './session-flags.ts';
import { CliOutput } from './terminal.ts';
import { loadVerbs } from './verbs.ts';

// Tests how a command line is parsed. No verb runs.

const directory = mkdtempSync(join(tmpdir(), 'shellfleet-arguments-'));
afterAll(() => rmSync(directory, { recursive: true }));

const terminal = new CliOutput(readCliConfig({}, false));

const verbs = await loadVerbs();

let said = '';
beforeEach(() => {
  said = '';
  vi.unstubAllEnvs();
});

function newProgram(env: NodeJS.ProcessEnv = {}): Command {
  const config = readCliConfig(env, false);
  const program = createProgram(config, terminal, verbs, () => {});
  const say = (text: string) => {
    said += text;
  };
  sayTo(say, program);
  return program;
}

function sayTo(say: (text: string) => void, command: Command): void {
  command.configureOutput({ writeErr: say, writeOut: say });
  for (const inner of command.commands) sayTo(say, inner);
}

interface Parsed {
  verb: string;
  args: unknown[];
  flags: Record<string, unknown>;
}

/** Returns the verb that would run, with its arguments and flags. */
function parse(args: readonly string[], env: NodeJS.ProcessEnv = {}): Parsed {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const program = newProgram(env);
  const parsed: Parsed[] = [];
  for (const [verb, command] of leafVerbs(program)) {
    command.action(() => void parsed.push({ verb, args: command.processedArgs, flags: command.opts() }));
  }
  program.parse(endOptionsAtScript(program, args), { from: 'user' });
  expect(parsed).toHaveLength(1);
  return parsed[0] as Parsed;
}

const usage = (args: readonly string[]) => {
  expect(() => parse(args)).toThrow(expect.objectContaining({ exitCode: 1 }));
  return said;
};

const ownVerbs = leafVerbs(newProgram())
  .map(([path]) => path)
  .filter((path) => !path.startsWith('__'));

describe('the verbs of the command line', () => {
  test('have examples, each of an existing verb', () => {
    expect(Object.keys(EXAMPLES).sort()).toEqual([...ownVerbs].sort());
  });

  test.each(Object.entries(EXAMPLES).flatMap(([verb, lines]) => lines.map((line) => [verb, line] as const)))(
    'an example of %s is understood as one: %s',
    (verb, line) => {
      const inner = /<\((shellfleet .*)\)/.exec(line)?.[1] ?? line.replace(/ [<>] \S+$/, '');
      const words = execFileSync('bash', ['-c', `set -- ${inner}\nprintf '%s\\0' "$@"`], { encoding: 'utf8' });
      expect(parse(words.split('\0').slice(1, -1)).verb).toBe(verb);
    },
  );

  test.each(documentLines())('a line of a document is understood: %s', (line) => {
    const words = execFileSync('bash', ['-c', `set -- ${line}\nprintf '%s\\0' "$@"`], { encoding: 'utf8' });
    parse(words.split('\0').slice(1, -1));
    expect(said).toBe('');
  });

  test('have a help with their examples', () => {
    const program = newProgram();
    for (const [path, verb] of leafVerbs(program)) {
      if (path.startsWith('__')) continue;
      said = '';
      verb.outputHelp();
      for (const line of EXAMPLES[path] ?? []) expect(said).toContain(`  ${line}\n`);
    }
  });

  test('have the defaults of a session at the end of the help of exec', () => {
    const program = newProgram();
    program.commands.find((verb) => verb.name() === 'exec')?.outputHelp();
    const lines = said.split('\n').map((line) => line.trim().replace(/ +/, ' '));
    expect(lines).toEqual(
      expect.arrayContaining([
        ...['policy docker', 'user 1000:1000', 'commandTimeoutMs 10 min', 'idleTimeoutMs 30 min', 'maxLifetimeMs 24 h'],
        ...['priority 0', 'output.maxBytes 256 KiB', 'output.keep head-tail', 'limits.memoryBytes 512 MiB'],
        'A command stops within 1500 ms of its time limit or cancellation; it runs again after a loss: never.',
      ]),
    );
  });

  test('have one variable for each flag, and share variables only for the same flag', () => {
    const flags = new Map<string, string>();
    for (const [path, verb] of leafVerbs(newProgram())) {
      for (const { long, hidden, envVar, flags: own, description } of verb.options) {
        if (hidden) continue;
        expect(envVar, `${path} ${long}`).toMatch(/^SHELLFLEET_[A-Z_]+$/);
        const meaning = `${own}: ${description}`;
        expect(flags.get(envVar as string) ?? meaning, `${path} ${long}`).toBe(meaning);
        flags.set(envVar as string, meaning);
      }
    }
  });

  const LATE = ['exec', 's', '--timeout', '2s', '--', 'ls -x', '--json'];
  test.each<[string[], string, Record<string, unknown>]>([
    [['exec', 's', 'ls', '-la', '/'], 'ls -la /', {}],
    [['exec', 's', '--timeout', '2s', 'ls', '-la'], 'ls -la', { timeout: 2_000 }],
    [LATE, "'ls -x' --json", { timeout: 2_000 }],
    [['exec', '-w', '/tmp', '-u', '0', '-i', 's', 'cat', '-u'], 'cat -u', { cwd: '/tmp', user: '0', stdin: true }],
    [['exec', '-ie', 'A=b', 's', 'cat', '-e'], 'cat -e', { stdin: true, env: { A: 'b' } }],
    [['exec', '-eA=b', '--cwd=/x', 's', 'a', '--', 'b'], 'a -- b', { env: { A: 'b' }, cwd: '/x' }],
    [['exec', '--escalate', 'it needs /etc', 's', 'id'], 'id', { escalate: 'it needs /etc' }],
    [['--tenant', 'exec', 'exec', '--tenant', 'run', 's', 'make', '-j2'], 'make -j2', {}],
    [['exec', '--', 's', 'ls', '-l'], 'ls -l', {}],
    [['exec', 's', '-d', 'echo "$A" -n'], 'echo "$A" -n', { detach: true }],
  ])('take no options after the first word of the script: %j', (args, script, flags) => {
    const parsed = parse(args);
    expect([parsed.verb, parsed.args[0], toScript(parsed.args[1] as string[]), parsed.flags]).toEqual([
      'exec',
      's',
      script,
      flags,
    ]);
  });

  test('take the first word after run for the beginning of its script', () => {
    const { args, flags } = parse(['run', '--timeout', '1s', 'ls', '--all', '-t']);
    expect([toScript(args[0] as string[]), flags]).toEqual(['ls --all -t', { timeout: 1_000 }]);
  });

  test('refer to attach for -t', () => {
    const { flags } = parse(['exec', '-it', 's', 'bash']);
    expect(() => toRunOptions(flags)).toThrow(/no terminal\. Use `shellfleet attach SESSION`/);
  });

  test('build the spec of a session from --spec, and from flags, which win', () => {
    const path = join(directory, 'spec.json');
    writeFileSync(path, JSON.stringify({ priority: 7, image: 'a', limits: { pids: 99, cpus: 1 }, labels: { a: '1' } }));
    const flags = [
      ['--image', 'debian:12', '--policy', 'docker', '--memory', '1g', '--cpus', '0.5', '--user', '1000:1000'],
      ['--workspace', '/srv/w', '--session-env', 'A=b=c', '--session-env', 'B=', '--idle-timeout', '5m'],
      ['--startup', 'one', '--startup', 'two; three', '--shutdown', 'bye', '--label', 'b=2', '--redact', 'email:mask'],
      ['--host-label', 'gpu=yes', '--host-label', 'zone=a'],
    ].flat();
    const given = {
      ...{ image: 'debian:12', policy: 'docker', user: '1000:1000', workspace: '/srv/w', idleTimeoutMs: 300_000 },
      ...{ env: { A: 'b=c', B: '' }, startupCommands: ['one', 'two; three'], shutdownCommands: ['bye'] },
      ...{ redaction: [{ type: 'email', strategy: 'mask' }], hosts: { gpu: 'yes', zone: 'a' } },
    };
    const limits = { memoryBytes: 2 ** 30, cpus: 0.5 };
    const specOf = (verb: string[], more: string[] = []) => toSpec(parse([...verb, ...flags, ...more]).flags);
    for (const verb of [
      ['exec', 's', '--pids', '50'],
      ['run', '--pids', '50'],
      ['attach', 's', '--pids', '50'],
      ['batch', 'run', 'tasks.jsonl', '--out', 'results.jsonl', '--pids', '50'],
    ]) {
      const script = verb[0] === 'exec' || verb[0] === 'run' ? ['--', 'true'] : [];
      expect(specOf(verb, script)).toEqual({ ...given, limits: { ...limits, pids: 50 }, labels: { b: '2' } });
    }
    expect(specOf(['attach', 's', '--spec', path])).toEqual({
      ...{ ...given, priority: 7 },
      ...{ limits: { ...limits, pids: 99 }, labels: { a: '1', b: '2' } },
    });
    expect(toSpec(parse(['exec', 's', '--timeout', '1s', '--', 'true']).flags)).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ['/srv/w', '/srv/w'],
    ['/srv/w:ro', { path: '/srv/w', readOnly: true }],
    ['/srv/w:/workspace', '/srv/w'],
    ['/srv/w:/workspace:ro', { path: '/srv/w', readOnly: true }],
    ['/srv/w:/srv/w', { path: '/srv/w', target: '/srv/w' }],
    ['/srv/w:/data:ro', { path: '/srv/w', target: '/data', readOnly: true }],
  ])('take a workspace in the form of a docker mount: %s', (text, workspace) => {
    expect(toSpec(parse(['attach', 's', '--workspace', text]).flags)).toEqual({ workspace });
  });

  test('treat variables like flags, with a switch off when empty, 0 or false', () => {
    const env = {
      ...{ SHELLFLEET_MEMORY: '64m', SHELLFLEET_LABEL: 'a=1', SHELLFLEET_DETACH: '1' },
      ...{ SHELLFLEET_JSON: '0', SHELLFLEET_STDIN: 'false', SHELLFLEET_UP_DETACH: '' },
    };
    const { flags } = parse(['exec', 's', '--', 'true'], env);
    expect(flags).toEqual({ memory: 2 ** 26, label: { a: '1' }, detach: true });
    expect(parse(['up'], env).flags).toEqual({ drainTimeout: 60_000 });
  });

  test.each<[string[], RegExp]>([
    [['exce', 's', 'ls'], /unknown command 'exce' \(Did you mean exec\?\)/],
    [['exec', 's', '--timout', '3s', 'ls'], /unknown option '--timout' \(Did you mean --timeout\?\)/],
    [['exec', 's', '-la'], /unknown option '-la'\. Put `--` before a script that begins with a dash\. --help/],
    [['run', '-lx', 'ls'], /unknown option '-lx'\. Put `--` before a script that begins with a dash\. --help/],
    [['ps', '-lx'], /unknown option '-lx'\. --help/],
    [['exec', '--labels', 'a=b', 's', 'ls'], /unknown option '--labels' \(Did you mean --label\?\)/],
    [['batch', 'runn'], /unknown command 'runn' \(Did you mean run\?\)/],
    [['exec', '--memory', 'lots', 's', 'ls'], /Give a size such as 4096, 64k or 1g/],
    [['exec', '--cpus', 'two', 's', 'ls'], /Give a number such as 0.5 or 2/],
    [['exec', '--label', 'ci', 's', 'ls'], /Give it as NAME=value/],
    [['exec', '--workspace', 'w', 's', 'ls'], /Give an absolute path/],
    [['exec', '--workspace', '/w:data', 's', 'ls'], /Give an absolute path/],
    [['exec', '--policy', 'dokcer', 's', 'ls'], /Allowed choices are docker, host/],
    [['exec', '--spec', '/nonexistent', 's', 'ls'], /It cannot be read: ENOENT/],
    [['exec', 's'], /missing required argument 'script'/],
    [['up', '--slots', '0'], /'0' is invalid\. Give a whole number from 1 to 10000\. --help/],
    [['serve', '--port', '99999'], /option '--port <n>' argument '99999' is invalid\. It must be 0 to 65535\. --help/],
    [['serve', '--drain', 'soon'], /argument 'soon' is invalid\. It must be a time such as 30s/],
    [['--namespace', 'a b', 'ps'], /option '--namespace <name>' argument 'a b' is invalid\. It may only hold A-Z/],
    [['ps', '--tenant', 'a/b'], /option '--tenant <name>' argument 'a\/b' is invalid\. It may only hold A-Z/],
    [['completion', 'tcsh'], /Allowed choices are bash, zsh, fish/],
  ])('report wrong usage in one line with the next step: %j', (args, message) => {
    const line = usage(args);
    expect(line).toMatch(message);
    expect(line).toMatch(/^shellfleet: [^\n]*--help lists verbs and flags\.\n$/);
  });

  test('refuse a spec that is not one JSON object', () => {
    for (const text of ['[]', '"a"', '{"a":']) {
      writeFileSync(join(directory, 'wrong.json'), text);
      expect(usage(['exec', '--spec', join(directory, 'wrong.json'), 's', 'ls'])).toMatch(/JSON/);
    }
  });

  test('are in docs/cli.md with every flag and variable', () => {
    const page = readFileSync(new URL('../../../../docs/cli.md', import.meta.url), 'utf8');
    const program = newProgram();
    const options = [program, ...leafVerbs(program).map(([, verb]) => verb)]
      .flatMap((verb) => verb.options)
      .filter(({ hidden, long }) => !hidden && long !== '--version');
    const isIn = (text: RegExp) => [...new Set(Array.from(page.matchAll(text), ([, word]) => word))].sort();
    const verbs = new RegExp(`^\\| \`(${[...ownVerbs].sort((a, b) => b.length - a.length).join('|')})[ \`]`, 'gm');
    expect(isIn(verbs)).toEqual([...ownVerbs].sort());
    const flags = new Set(options.map(({ long }) => long));
    expect(isIn(/(?<![\w-])(--[a-z][a-z-]*)/g).filter((flag) => flag !== '--help')).toEqual([...flags].sort());
    const variables = new Set(options.map(({ envVar }) => envVar));
    const ofClient = ['SHELLFLEET_SEAL_KEY', 'SHELLFLEET_SIGNING_KEY'];
    expect(isIn(/(SHELLFLEET_[A-Z_]+)/g)).toEqual([...variables, ...ofClient].sort());
  });
});

/** Returns the calls of the command line in the documents and the notes of the chart, each alone on its line. */
function documentLines(): string[] {
  const root = new URL('../../../../', import.meta.url);
  const pages = readdirSync(new URL('docs', root)).filter((name) => name.endsWith('.md'));
  const paths = ['README.md', ...pages.map((name) => `docs/${name}`), 'infra/helm/shellfleet/templates/NOTES.txt'];
  const lines = paths.flatMap((path) => readFileSync(new URL(path, root), 'utf8').split('\n'));
  const calls = lines.flatMap((line) => /^ *(?:npx )?(shellfleet [a-z].*?)(?: +#.*)?$/.exec(line)?.[1] ?? []);
  // Others than plain words need a shell.
  return calls.filter((call) => !/[|<>;&$()`\\{[…]/.test(call.replaceAll(/'[^']*'|"[^"]*"/g, '')));
}
