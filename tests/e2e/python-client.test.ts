import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import { describe, expect, test } from 'vitest';

// The tests of the Python client, by Python's own runner.

const client = join(checkoutRoot, 'clients/python');

/** Runs the tests. Returns the titles of those that passed, and the whole report. */
function runTests(): Promise<{ exitCode: number; passed: string[]; report: string }> {
  const env = { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: join(client, 'src') };
  const args = ['-W', 'error', '-m', 'unittest', 'discover', '--verbose', '--start-directory', 'tests'];
  return new Promise((resolve) => {
    execFile('/usr/bin/python3', args, { cwd: client, env, maxBuffer: 1 << 26 }, (error, _stdout, report) => {
      const passed = Array.from(report.matchAll(/^(test_\w+) .*\.\.\. ok$/gm), ([, title = '']) => title);
      resolve({ exitCode: error === null ? 0 : Number(error.code), passed, report });
    });
  });
}

describe('the Python client', () => {
  test('passes its own tests, and leaves no socket, task or thread behind', async () => {
    const { exitCode, passed, report } = await runTests();
    // Python reports what a destructor finds, such as an open socket, and goes on.
    expect(report).not.toMatch(/ResourceWarning|Exception ignored|was destroyed but it is pending|never retrieved/);
    expect({ exitCode, report: exitCode === 0 ? '' : report }).toEqual({ exitCode: 0, report: '' });
    expect(passed.length).toBeGreaterThan(50);
  });
});
