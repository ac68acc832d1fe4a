import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

// Packages run from source under this condition, so no test needs a build.
const conditions = ['@shellfleet/source', 'module', 'node', 'development|production'];
const source = {
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  // What vitest itself loads, global set-up above all, resolves in an environment of its own.
  environments: { __vitest__: { resolve: { conditions } } },
};

type Timing = { groupOrder: number; testTimeout: number; maxWorkers?: number };

function dockerProject(name: string, { groupOrder, ...rest }: Timing): TestProjectInlineConfiguration {
  const include = [`tests/${name}/**/*.test.ts`];
  const globalSetup = ['./tests/support/global-setup.ts'];
  const sequence = { groupOrder };
  return { ...source, test: { ...rest, name, include, globalSetup, sequence, hookTimeout: 60_000 } };
}

export default defineConfig({
  test: {
    // Two forks suit the smallest machine this is tested on; the tests that use Docker wait more than they compute.
    maxWorkers: 2,
    projects: [
      {
        ...source,
        test: {
          name: 'unit',
          // Fast on an idle machine; on a busy one still no reason to fail.
          testTimeout: 30_000,
          include: [
            'libs/**/src/**/*.test.ts',
            'apps/**/src/**/*.test.ts',
            'infra/**/*.test.ts',
            'scripts/**/*.test.ts',
            'tests/support/**/*.test.ts',
            'examples/**/*.test.ts',
          ],
        },
      },
      // One after the other: what a fault does to the engine or to the processor's time must not fail another project.
      dockerProject('integration', { groupOrder: 1, testTimeout: 30_000 }),
      dockerProject('e2e', { groupOrder: 2, testTimeout: 60_000 }),
      dockerProject('wounds', { groupOrder: 3, testTimeout: 60_000 }),
      dockerProject('chaos', { groupOrder: 4, testTimeout: 120_000, maxWorkers: 1 }),
    ],
  },
});
