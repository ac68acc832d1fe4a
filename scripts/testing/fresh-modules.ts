import { readFileSync } from 'node:fs';
import { afterAll, expect, vi } from 'vitest';

// Runs before each test file. Files of a process share evaluated modules, which halves the time of most. Before and
// after a file that uses vi.mock, itself or in its support modules, all evaluated modules are dropped. A support module
// may not be evaluated again for the next file, so it registers hooks in functions only.

const replacesModules = /\bvi\.mock\(|\/support\/(client-stage|fake-shell-workers)\.ts'/;

if (replacesModules.test(readFileSync(expect.getState().testPath ?? '', 'utf8'))) {
  vi.resetModules();
  afterAll(() => void vi.resetModules());
}
