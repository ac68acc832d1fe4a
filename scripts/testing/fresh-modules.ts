import { readFileSync } from 'node:fs';
import { afterAll, expect, vi } from 'vitest';

// Runs before each test file. Files share the evaluated modules of their process, which halves the time of most. One
// that replaces modules by vi.mock, itself or in its support, begins and ends with none. So support registers hooks in
// functions that each file calls: as a module it is evaluated once.

const replacesModules = /\bvi\.mock\(|\/support\/(client-stage|fake-shell-workers)\.ts'/;

if (replacesModules.test(readFileSync(expect.getState().testPath ?? '', 'utf8'))) {
  vi.resetModules();
  afterAll(() => void vi.resetModules());
}
