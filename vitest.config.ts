import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LongFilesFirst } from './scripts/testing/long-files-first.ts';

// Worker and command-line processes of the tests start some thousand times: each file is compiled once.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url));

// Packages run from source under this condition, so no test needs a build.
const conditions = ['@shellfleet/source', 'module', 'node', 'development|production'];
const source = {
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  // Vitest loads its own modules, the global set-up above all, in an environment of its own.
  environments: { __vitest__: { resolve: { conditions } } },
};

/** Test files of one process share its modules: evaluating them anew for each took more time than most files. */
const sharing = { isolate: false, setupFiles: ['./scripts/testing/fresh-modules.ts'] };

/**
 * Tests of which each runs alone: those that compare times under load with times before
 * it, and fork bombs, which take the processors from every other test.
 */
const figures = [
  'tests/integration/approvals-revoke.test.ts',
  'tests/integration/bench.test.ts',
  'tests/integration/shell-fork-bombs.test.ts',
  'tests/e2e/abuse.test.ts',
  'tests/e2e/busy-neighbours.test.ts',
  'tests/e2e/floods.test.ts',
  'tests/e2e/late-output-flood.test.ts',
  'tests/e2e/terminal-echo.test.ts',
];

/** A condition comes true on a busy machine as well, but later. */
const expectation = { poll: { timeout: 20_000 } };

type Timing = { groupOrder: number; testTimeout: number; maxWorkers: number };

function dockerProject(
  name: string,
  include: string[],
  { groupOrder, ...rest }: Timing,
): TestProjectInlineConfiguration {
  const globalSetup = ['./tests/support/global-setup.ts'];
  const sequence = { groupOrder };
  const exclude = name === 'figures' ? [] : figures;
  return {
    ...source,
    test: {
      ...rest,
      ...(name === 'figures' ? {} : sharing),
      name,
      include,
      exclude,
      globalSetup,
      sequence,
      hookTimeout: 60_000,
      expect: expectation,
    },
  };
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    sequence: { sequencer: LongFilesFirst },
    projects: [
      {
        ...source,
        test: {
          ...sharing,
          name: 'unit',
          // Fast on an idle machine; on a busy one still no reason to fail.
          testTimeout: 30_000,
          expect: expectation,
          include: [
            'libs/**/src/**/*.test.ts',
            'apps/**/src/**/*.test.ts',
            'infra/!(helm)/**/*.test.ts',
            'scripts/**/*.test.ts',
            'tests/bench/**/*.test.ts',
            'tests/support/**/*.test.ts',
            'tests/kubernetes/run/**/*.test.ts',
            'tests/chaos/*/**/*.test.ts',
            'examples/**/*.test.ts',
          ],
        },
      },
      {
        ...source,
        test: { ...sharing, name: 'chart', testTimeout: 30_000, include: ['infra/helm/test/**/*.test.ts'] },
      },
      // A group starts when the one before it has ended. Tests of the first mostly wait for containers and timeouts, so
      // more of them than processors run at once. Faults are injected when those tests are over; their tests wait more,
      // for leases.
      dockerProject('integration', ['tests/integration/**/*.test.ts'], {
        groupOrder: 1,
        testTimeout: 30_000,
        maxWorkers: 3,
      }),
      dockerProject('e2e', ['tests/e2e/**/*.test.ts'], { groupOrder: 1, testTimeout: 60_000, maxWorkers: 3 }),
      dockerProject('kubernetes', ['tests/kubernetes/suite/**/*.test.ts'], {
        groupOrder: 1,
        testTimeout: 60_000,
        maxWorkers: 3,
      }),
      dockerProject('packages', ['tests/packages/**/*.test.ts'], {
        groupOrder: 1,
        testTimeout: 120_000,
        maxWorkers: 3,
      }),
      dockerProject('wounds', ['tests/wounds/**/*.test.ts'], { groupOrder: 1, testTimeout: 60_000, maxWorkers: 3 }),
      dockerProject('chaos', ['tests/chaos/*.test.ts'], { groupOrder: 2, testTimeout: 120_000, maxWorkers: 4 }),
      dockerProject('figures', figures, { groupOrder: 3, testTimeout: 60_000, maxWorkers: 1 }),
    ],
  },
});
