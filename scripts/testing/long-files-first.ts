import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { root } from '../steps.ts';

/**
 * The longest files of each group of projects, longest first. Vitest orders files without a recorded run by size, so
 * a short file that waits for a minute could begin last and run alone.
 */
export const longFiles = [
  'tests/e2e/up-down.test.ts',
  'tests/packages/installed.test.ts',
  'tests/e2e/up-interrupted.test.ts',
  'tests/wounds/lost-contact.test.ts',
  'tests/e2e/stdin.test.ts',
  'tests/kubernetes/suite/workers.test.ts',
  'tests/chaos/random-faults.test.ts',
  'tests/chaos/output-adopted.test.ts',
  'tests/chaos/two-fleets.test.ts',
  'tests/chaos/shared-fleet.test.ts',
  'tests/chaos/kubernetes-moving.test.ts',
  'tests/chaos/worker-killed.test.ts',
  'tests/chaos/lease.test.ts',
  'tests/chaos/reliability-figures.test.ts',
  'tests/chaos/admission.test.ts',
  'tests/chaos/redis-stopped.test.ts',
  'tests/chaos/terminals.test.ts',
];

/** Starts the longest test files of a group before its other files. */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const long = sorted
      .filter((file) => longFiles.includes(pathOf(file)))
      .sort((a, b) => longFiles.indexOf(pathOf(a)) - longFiles.indexOf(pathOf(b)));
    return [...long, ...sorted.filter((file) => !long.includes(file))];
  }
}

function pathOf({ moduleId }: TestSpecification): string {
  return relative(root, moduleId);
}
