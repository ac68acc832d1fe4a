import { defineConfig } from 'vitest/config';

// Packages run from source under this condition, so no test needs a build.
const conditions = ['@shellfleet/source', 'module', 'node', 'development|production'];
const source = { resolve: { conditions }, ssr: { resolve: { conditions, externalConditions: conditions } } };
const withMachine = { globalSetup: ['./tests/support/global-setup.ts'], hookTimeout: 60_000 };

export default defineConfig({
  test: {
    // Two forks suit the smallest machine this is tested on; the tests that use Docker wait more than they compute.
    maxWorkers: 2,
    projects: [
      {
        ...source,
        test: {
          name: 'unit',
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
      {
        ...source,
        test: { ...withMachine, name: 'integration', include: ['tests/integration/**/*.test.ts'], testTimeout: 30_000 },
      },
      { ...source, test: { ...withMachine, name: 'e2e', include: ['tests/e2e/**/*.test.ts'], testTimeout: 60_000 } },
      {
        ...source,
        test: { ...withMachine, name: 'chaos', include: ['tests/chaos/**/*.test.ts'], testTimeout: 120_000 },
      },
    ],
  },
});
