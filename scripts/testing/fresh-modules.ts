import { readFileSync } from 'node:fs';
import { afterAll, expect, vi } from 'vitest';

// Runs before each test file. Files of a process share evaluated modules, which halves the time of most. Before and
// after files that use vi.mock, also in their support, all are dropped, so support registers hooks in functions.

const replacesModules = /\bvi\.mock\(|\/support\/(client-stage|fake-shell-workers)\.ts'/;

if (replacesModules.test(readFileSync(expect.getState().testPath ?? '', 'utf8'))) {
  vi.resetModules();
  afterAll(() => void vi.resetModules());
}
