import { defineConfig } from 'vitest/config';

// The tests on a real cluster: one file at a time, since they change its workers and its quota.

const conditions = ['@shellfleet/source', 'module', 'node', 'development|production'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ['tests/kubernetes/suite/*.test.ts'],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000, interval: 200 } },
  },
});
