import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../steps.ts';

// Tests every import rule with one run of Biome, in a directory with only the rules and violations.

type Seed = [path: string, text: string];

const workspace = / Move whatever both need down /;
const violations: [...Seed, message: RegExp][] = [
  ['libs/protocol/src/a.ts', "import { createHash } from 'node:crypto';", /libs\/protocol imports zod alone/],
  ['libs/concurrency/src/a.ts', "import { z } from 'zod';", /libs\/concurrency imports Node alone/],
  ['libs/concurrency/src/b.ts', "import '@shellfleet/protocol';", /libs\/concurrency imports Node alone/],
  ['libs/policy/src/a.ts', "import { Fleet } from '@shellfleet/client';", workspace],
  ['libs/policy/src/b.ts', "import {\n  readFile,\n} from 'node:fs/promises';", /decides and does nothing/],
  ['libs/policy/src/c.ts', 'export const now = () => Date.now();', /no clock/],
  ['libs/policy/src/d.ts', 'setTimeout(() => {}, 10);', /no clock/],
  ['libs/policy/a.ts', "import '@shellfleet/mailbox';", workspace],
  ['libs/policy/src/e.ts', "import '@shellfleet/redis';", workspace],
  ['libs/redis/src/a.ts', "import '@shellfleet/sealing';", workspace],
  ['libs/redis/src/b.ts', "import '@shellfleet/mailbox';", workspace],
  ['libs/sealing/src/a.ts', "import '@shellfleet/concurrency';", workspace],
  ['libs/sealing/src/b.ts', "import '@shellfleet/redis';", workspace],
  ['libs/mailbox/src/a.ts', "import '@shellfleet/placement';", workspace],
  ['libs/keeper/src/a.ts', "import '@shellfleet/mailbox';", workspace],
  ['libs/placement/src/a.ts', "import '@shellfleet/client';", workspace],
  ['libs/client/src/a.ts', "import '@shellfleet/worker';", workspace],
  ['libs/client/src/b.test.ts', "import '@shellfleet/worker/shell';", workspace],
  ['libs/access/src/a.ts', "import '@shellfleet/redis';", workspace],
  ['libs/adapters/langchain/src/a.ts', "import '@shellfleet/mailbox';", workspace],
  ['apps/worker/src/a.ts', "import 'shellfleet';", workspace],
  ['apps/worker/src/b.ts', "import type { Fleet } from '@shellfleet/client';", workspace],
  ['apps/producer/src/a.ts', "export * from '@shellfleet/worker';", workspace],
  ['apps/api/src/a.ts', "import '@shellfleet/redis';", workspace],
  ['apps/mcp/src/a.ts', "import '@shellfleet/worker';", workspace],
  ['infra/setup/src/a.ts', "await import('@shellfleet/client');", workspace],
  ['libs/vendor/src/a.ts', "import '@shellfleet/protocol';", workspace],
  ['examples/npm-packages/src/a.ts', "import '@shellfleet/mailbox';", workspace],
  ['apps/worker/src/c.ts', "import x from '@shellfleet/protocol/src/ids.ts';", /reaches into another package/],
  ['libs/client/src/c.ts', "export * from '../../protocol/src/ids.ts';", /reaches into another package/],
  ['libs/client/src/deep/d.ts', "export * from '../../../protocol/src/ids.ts';", /reaches into another package/],
  ['tests/e2e/a.ts', "import '../../apps/worker/src/worker.ts';", /reaches into another package/],
  ['tests/e2e/b.ts', "await import('../../apps/worker/src/worker.ts');", /reaches into another package/],
  ['libs/mailbox/src/b.ts', "import '../../../tests/support/until.ts';", /reaches into another package/],
  [
    'apps/worker/src/session/a.ts',
    "import type { Queue } from '@shellfleet/vendor/bullmq';",
    /bullmq is used in libs\/placement/,
  ],
  [
    'libs/client/src/queue/a.ts',
    "import { Queue } from '@shellfleet/vendor/bullmq';",
    /bullmq is used in libs\/placement/,
  ],
  ['apps/worker/src/sandbox/a.ts', "import '@shellfleet/vendor/dockerode';", /dockerode is used in/],
  ['apps/worker/src/sandbox/docker/a.ts', "import Docker from 'dockerode';", /from @shellfleet\/vendor/],
  ['libs/placement/src/b.ts', "await import('bullmq');", /from @shellfleet\/vendor/],
  ['apps/worker/src/output/a.ts', "import { log } from '../log.ts';", /output stages are pure/],
  ['apps/worker/src/output/b.ts', "await import('pino');", /output stages are pure/],
  ['apps/worker/src/d.ts', 'const debug = process.env.DEBUG;', /Only config.ts reads process.env/],
  ['apps/worker/src/e.ts', "const debug = process.env['DEBUG'];", /Only config.ts reads process.env/],
  ['apps/worker/src/f.ts', 'const { DEBUG } = process.env;', /Only config.ts reads process.env/],
  ['apps/worker/src/main.ts', 'const debug = process.env.DEBUG;', /Only config.ts reads process.env/],
  ['libs/client/src/e.ts', 'await redis.xadd(sessionKeys(ns, t, s).stream);', /Only libs\/mailbox reads and writes/],
  ['apps/worker/src/g.ts', 'await redis.hset(keys.state, field, 1);', /Only libs\/mailbox reads and writes/],
  ['libs/client/src/read.ts', "await redis.hget(keys.state, 'phase');", /Only libs\/mailbox reads and writes/],
];

const allowed: Seed[] = [
  ['apps/worker/src/batches/z.ts', "await import('@shellfleet/client/driving');"],
  ['libs/vendor/src/z.ts', "export { Queue } from 'bullmq';\nimport type Docker from 'dockerode';"],
  ['libs/placement/src/z.ts', "import { Queue } from '@shellfleet/vendor/bullmq';"],
  ['libs/client/src/queue/tools-queue.ts', "import { Queue } from '@shellfleet/vendor/bullmq';"],
  ['apps/worker/src/sandbox/docker/z.ts', "import { loadDockerode } from '@shellfleet/vendor/dockerode';"],
  ['apps/worker/src/output/z.ts', "import { cut } from './cut.ts';\nimport '@shellfleet/protocol';"],
  ['apps/worker/src/config/config.ts', 'export const level = process.env.LEVEL;'],
  ['apps/producer/src/main.ts', 'await main(process.env);'],
  ['apps/api/src/z.ts', "import '@shellfleet/access';\nimport '@shellfleet/client';"],
  ['apps/mcp/src/z.ts', "import '@shellfleet/access';\nimport '@shellfleet/client';"],
  ['apps/worker/src/z.ts', 'await redis.hdel(fleet.owners, member);\nawait redis.hget(fleet.owners, member);'],
  [
    'infra/setup/src/z.ts',
    "import { buildKeeper } from '@shellfleet/keeper/build';\nimport '@shellfleet/vendor/dockerode';",
  ],
  ['libs/policy/src/z.ts', "// import x from 'node:fs';\nconst text = 'Date.now()';\nconst s = `import 'bullmq'`;"],
  ['libs/policy/src/z.test.ts', "import { readFile } from 'node:fs/promises';\nDate.now();"],
  ['libs/client/src/z.ts', "import '@shellfleet/placement';\nimport '@shellfleet/protocol/plain';"],
  ['libs/mailbox/src/z.ts', "import '@shellfleet/redis';\nimport '@shellfleet/sealing';"],
  ['libs/access/src/z.ts', "import '@shellfleet/client';"],
  ['libs/client/src/deep/z.ts', "import { a } from '../z.ts';"],
  ['tests/e2e/z.ts', "import { Queue } from 'bullmq';\nimport '../support/until.ts';"],
];

/** Order of scripts/lint/worker-directories.grit and of ARCHITECTURE.md. */
const workerOrder = [
  ['main.ts'],
  ['start-worker.ts', 'index.ts'],
  ['worker.ts'],
  ['worker'],
  ['batches', 'calls', 'session', 'tools', 'upkeep'],
  ['wider'],
  ['run', 'terminals'],
  ['shell'],
  ['approvals'],
  ['admission'],
  ['audit', 'egress', 'gate', 'journal', 'lease', 'overflow-log', 'redaction', 'sandbox'],
  ['host', 'metrics', 'output', 'queue', 'sink', 'tracing'],
  ['config', 'log'],
];

/** Order of scripts/lint/client-directories.grit and of ARCHITECTURE.md. */
const clientOrder = [
  ['index.ts'],
  ['driving.ts'],
  ['batch-report', 'fleet.ts'],
  ['detached'],
  ['batch', 'run-one-shot.ts'],
  ['session.ts'],
  ['command.ts'],
  ['terminal', 'view.ts'],
  ['connect-settings.ts', 'files'],
  ['submit'],
  ['approvals', 'keys', 'read', 'stream', 'tools'],
  ['hosts', 'stdin'],
  ['connection'],
  ['fleet-file.ts', 'model-text.ts', 'queue', 'results', 'spans.ts', 'warn.ts'],
];

type Finding = { category: string; message: string; location: { path: string; start: { line: number } } };

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true, force: true }))));

/** Returns the findings of the import rules in a directory with only the rules and these files. */
async function lint(seeds: Seed[]): Promise<Finding[]> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-lint-'));
  directories.push(directory);
  for (const name of ['biome.jsonc', '.gitignore', 'scripts/lint'])
    await cp(join(root, name), join(directory, name), { recursive: true });
  for (const [path, text] of seeds) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), text);
  }
  const args = ['lint', '--reporter=json', '--max-diagnostics=none', '.'];
  const run = spawnSync(join(root, 'node_modules/.bin/biome'), args, { cwd: directory, encoding: 'utf8' });
  const { diagnostics } = JSON.parse(run.stdout) as { diagnostics: Finding[] };
  return diagnostics.filter(({ category }) => category === 'plugin' || category === 'lint/style/noRestrictedImports');
}

describe('the import rules', () => {
  let findings: Finding[];

  beforeAll(async () => {
    findings = await lint([...violations.map(([path, text]): Seed => [path, text]), ...allowed]);
  }, 60_000);

  const messagesOf = (path: string) => [
    ...new Set(findings.filter(({ location }) => location.path === path).map(({ message }) => message)),
  ];

  test.each(violations)('find a violation in %s: %s', (path, _text, message) => {
    expect(messagesOf(path)).toContainEqual(expect.stringMatching(message));
  });

  test.each(allowed)('find nothing in %s: %s', (path) => {
    expect(messagesOf(path)).toEqual([]);
  });
});

describe.each([
  ['worker', 'apps/worker/src', workerOrder],
  ['client', 'libs/client/src', clientOrder],
])('the directories of the %s', (_name, source, order) => {
  const members = order.flat();
  const stepOf = (member: string) => order.findIndex((step) => step.includes(member));
  // Returns the forbidden imports of a member: the members before it and the others of its step.
  const forbidden = (importer: string) =>
    members.filter((member) => member !== importer && stepOf(member) <= stepOf(importer));

  test('all have a place in the order', async () => {
    const names = await readdir(join(root, source));
    expect(names.filter((name) => !name.endsWith('.test.ts') && !members.includes(name))).toEqual([]);
  });

  test('import only members that come after them in the order', { timeout: 60_000 }, async () => {
    const pathOf = (importer: string) => `${source}/${isFile(importer) ? importer : `${importer}/seeded.ts`}`;
    const importOf = (importer: string, member: string) =>
      `import '${isFile(importer) ? './' : '../'}${isFile(member) ? member : `${member}/a.ts`}';\n`;
    const others = (importer: string) => members.filter((member) => member !== importer);
    const findings = await lint(
      members.map((importer) => [
        pathOf(importer),
        others(importer)
          .map((member) => importOf(importer, member))
          .join(''),
      ]),
    );
    const lines = (importer: string) =>
      findings
        .filter(({ category, location }) => category === 'plugin' && location.path === pathOf(importer))
        .map(({ location }) => location.start.line);
    const refused = members.map((importer) => [
      importer,
      others(importer).filter((_, index) => lines(importer).includes(index + 1)),
    ]);
    expect(refused).toEqual(members.map((importer) => [importer, forbidden(importer)]));
  });
});

function isFile(member: string): boolean {
  return member.endsWith('.ts');
}
