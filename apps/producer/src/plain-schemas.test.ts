import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';

describe('schemas of the command line', () => {
  // Runs in its own process, because zod reads the setting once, when it is loaded.
  test('make zod generate no code', () => {
    const script = `
    await import('./plain-schemas.ts');
    const { config } = await import('zod');
    console.log(String(config().jitless));`;
    const args = ['--no-warnings', '--input-type=module', '-e', script];
    expect(execFileSync(process.execPath, args, { cwd: import.meta.dirname, encoding: 'utf8' })).toBe('true\n');
  });
});
