import { glob } from 'node:fs/promises';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiProcess, startApiProcess } from '../support/api-process.ts';
import { type Fence, readFences } from '../support/doc-fences.ts';
import { DocReader } from '../support/doc-reader.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// The code of the documents runs as written, against a fleet. See doc-fences.ts.

const pages = ['README.md', ...(await Array.fromAsync(glob('docs/*.md', { cwd: checkoutRoot }))).toSorted()];
const fences = (await Promise.all(pages.map(readFences))).flat();
const isCode = ({ language }: Fence) => ['sh', 'ts', 'py'].includes(language);
const runs = fences.filter((fence) => isCode(fence) && fence.notRun === undefined && fence.file === undefined);
const programs = fences.filter(({ language, notRun }) => language === 'ts' && notRun === undefined);

let reader: DocReader;
let testFleet: TestFleet;
let api: ApiProcess;
beforeAll(async () => {
  reader = await DocReader.install();
  for (const fence of programs) await reader.save(fence);
  testFleet = await startFleet({ slots: 20, env: { SHELLFLEET_TOOLS: `${reader.directory}/images.ts` } });
  reader.use(testFleet);
  api = await startApiProcess(testFleet);
  const { key } = await testFleet.fleet.keys.create({ name: 'reader', scopes: ['submit', 'read', 'approve'] });
  await reader.useApi(api.url, key);
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await testFleet?.[Symbol.asyncDispose]();
  await reader?.[Symbol.asyncDispose]();
});

describe('the documents', () => {
  test('give every fence a language, and mark sh, ts and py to be run', () => {
    const others = fences.filter(
      (fence) => !isCode(fence) && !['text', 'yaml', 'json', 'toml'].includes(fence.language),
    );
    expect(others.map(({ place, language }) => `${place} ${language}`)).toEqual([]);
    expect(runs.length).toBeGreaterThan(10);
  });

  test('contain these commands that are not run', () => {
    const notRun = fences.filter((fence) => fence.notRun !== undefined);
    const lines = notRun.map(
      ({ place, code, notRun }) => `${place.split(':')[0]}: ${code.split('\n')[0]?.split('  ')[0]}: ${notRun}`,
    );
    expect(lines).toEqual([
      'README.md: npm start: tests/e2e/up-down.test.ts and scripts/bootstrap.test.ts start fleets',
      `README.md: curl -H "@$HOME/.local/state/shellfleet/api-header" --json '{"script":"echo hello"}' http://127.0.0.1:7410/v1/run: tests/e2e/serving.test.ts runs the line that \`up\` prints`,
      'README.md: npm install shellfleet: tests/packages installs the packages',
      'docs/audit.md: shellfleet audit export --follow --codes >> audit.jsonl: tests/e2e/audit-in-redis.test.ts follows',
      'docs/benchmarks.md: npm run bench: takes minutes, and the machine alone',
      'docs/cli.md: source <(npx shellfleet completion zsh): needs zsh',
      "docs/client.md: SHELLFLEET_TEST_TREE_FILES=100000 SHELLFLEET_TEST_TREE_BYTES=1000000000 npx vitest run --project e2e tests/e2e/files-beside.test.ts -t 'neither client nor worker': this is a test itself",
      'docs/client.md: for await (const approval of fleet.approvals.watch()) {: a person answers',
      'docs/deploy.md: apt-get install --yes redis-server: it needs three machines; tests/e2e/joining.test.ts runs the invitations and the workers',
      'docs/deploy.md: install -m 600 /dev/null /etc/shellfleet/api.env: it needs systemd; tests/e2e/serving.test.ts runs the server',
      'docs/deploy.md: cd infra: it needs an image registry; tests/e2e/worker-image.test.ts runs the worker of this file',
      "docs/http.md: SHELLFLEET_TEST_API_BYTES=1073741824 npx vitest run --project e2e tests/e2e/api-files.test.ts -t 'passes the server': this is a test itself",
      "docs/images.md: npx shellfleet run --image registry.example/bench/task-17:1 -- 'make test': names an image of a registry that does not exist",
      'docs/langchain.md: npm install langchain @langchain/core @langchain/langgraph @shellfleet/client @shellfleet/langchain: installs packages of the registry; tests/packages packs this one',
      'docs/mutants.md: npm run mutants: takes an hour',
      'docs/mutants.md: npm run mutants -- --rows: takes an hour',
      'docs/operations.md: npm install shellfleet: tests/packages installs the packages and starts such workers',
      'docs/operations.md: useradd --system --shell /usr/sbin/nologin shellfleet-sessions: adds a user to the machine; tests/e2e/host-policy.test.ts runs such a worker',
      "docs/output.md: npx vitest run --project figures tests/e2e/floods.test.ts -t 'flood costs': these are tests and a benchmark themselves",
      'docs/pools.md: npm run opening: takes two minutes, and the machine alone',
      'docs/python.md: python3 -m venv venv: tests/packages/python.test.ts installs the client into a fresh environment',
      'docs/reliability.md: npm run chaos -- --minutes 30 --seed 7: takes half an hour; npm test runs short rounds',
      'docs/reliability.md: SHELLFLEET_FIGURES=full npx vitest run --project chaos tests/chaos/reliability-figures.test.ts: these are tests themselves',
      'docs/telemetry.md: export OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318: it needs a collector; tests/e2e/tracing.test.ts runs the same',
    ]);
  });

  test.concurrent('contain programs that compile', async ({ expect }) => {
    expect(await reader.compile()).toBe('');
  }, 240_000);

  const pagesThatRun = pages.filter((page) => runs.some(({ place }) => place.startsWith(`${page}:`)));
  test.concurrent.each(pagesThatRun)(
    'work as shown in %s',
    async (page) => {
      const wrong: string[] = [];
      for (const fence of runs) if (fence.place.startsWith(`${page}:`)) wrong.push(...(await reader.try(fence)));
      expect(wrong).toEqual([]);
    },
    120_000,
  );
});
